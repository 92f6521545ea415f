"""A broker as its clients meet it: sockets, the dispatch of requests, handlers, and the program."""
