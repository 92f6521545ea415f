"""Speaks HTTP/1.1 between the processes of a home: one client and one server, both on h11."""
