"""Stores partition logs in files: segments, indexes, checkpoints, and recovery after a crash.

Files only, and synchronous: no event loop, no threads, no sockets, and no leadership. All disk
access goes through one `files.Files`, so that tests can fail any call or cut the power at any
moment; everything on disk is in Apache Kafka's own formats.
"""
