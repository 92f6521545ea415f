"""Handles requests, with one module for each API that the broker serves.

A handler gets the parts of its broker, the call and the decoded request; it returns the response,
or None if it will answer the call later. It opens no socket and no file. Errors that a client may
cause become fields of the response; any other exception is a bug and ends the connection.
"""
