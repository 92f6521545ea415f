"""REST: what is common to all versions, and a folder for each of them.

`router` and `calls` are the bare side, for what streams: produce, consume, sockets. What is asked
and answered in one piece is a view of Django REST framework. Both answer errors by `codes`.
"""
