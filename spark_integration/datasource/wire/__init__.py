"""The small client of executors: Kafka's protocol on blocking sockets, the standard library alone.

It has what a source and a sink need and no more (ADR 0047). One object is for one thread.
"""
