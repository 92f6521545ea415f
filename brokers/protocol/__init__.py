"""Encodes and decodes Kafka's wire protocol with pure functions and state machines.

Imports no sockets, files, clocks or other packages of this project.
"""
