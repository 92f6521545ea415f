"""REST: the parts that all versions share, and a package for each version.

`router` and `calls` serve bare ASGI calls, for all that streams: produce, consume, sockets. A
request with one complete answer is a Django REST framework view. Both report errors by `codes`.
"""
