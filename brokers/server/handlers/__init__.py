"""What a broker answers: one module for each API that it serves.

A handler is given the parts of its broker, the call and the decoded request; it returns the answer,
or None if it has taken the call over and will answer later. It opens no socket and no file. Errors
that a client may cause become fields of the answer; whatever else escapes is a bug and ends the
connection.
"""
