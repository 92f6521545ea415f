"""Records in: the stream and the batch of version 3, and version 2."""
