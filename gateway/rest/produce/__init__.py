"""Produces records: by the stream and the batch of version 3, and by version 2."""
