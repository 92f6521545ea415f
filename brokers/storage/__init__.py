"""Partition logs as files: segments, indexes, checkpoints and what survives a crash.

Files only and synchronous: no event loop, no threads, no sockets and no knowledge of who leads.
Every touch of the disk goes through one `files.Files`, so that tests can fail any call or cut the
power at any moment; everything on disk is in Apache Kafka's own formats.
"""
