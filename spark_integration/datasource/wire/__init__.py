"""A small Kafka client for executors, on blocking sockets, with the standard library only.

It has only what a source and a sink need (ADR 0047). An object belongs to one thread.
"""
