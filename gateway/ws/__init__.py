"""Records over WebSockets: what is said (`frames`), what it leads to (`session`), and the socket.

`session` decides and does nothing; `connection` does what it decides for one socket; `endpoint` is
the ASGI application that has all of them.
"""
