"""Bytes to messages and back: Kafka's wire protocol as pure functions and state machines.

Nothing here knows sockets, files, clocks or any other room of the house.
"""
