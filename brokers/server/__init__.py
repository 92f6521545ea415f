"""The client-facing side of a broker: sockets, request dispatch, handlers, and the program."""
