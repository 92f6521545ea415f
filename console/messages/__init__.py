"""Records for a browser: browsed, followed, searched, downloaded; as streams of bare ASGI.

Must not know pages. Reading joins no group and commits nothing.
"""
