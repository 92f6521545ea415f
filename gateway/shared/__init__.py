"""State that the workers of the gateway share in Valkey or Redis. It may be lost at any time.

So it is never the only copy: a worker rewrites what it owns every second, every key expires, and a
call returns None if the server does not answer, after which the worker continues alone.
"""
