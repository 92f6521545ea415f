"""Records over WebSockets: the messages (`frames`), the logic (`session`), and the connection.

`session` decides and does no I/O; `connection` carries its decisions out for one socket; `endpoint`
is the ASGI application of all sockets.
"""
