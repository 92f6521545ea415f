"""The partitions of a broker: leadership, readable offsets, and waiting requests."""
