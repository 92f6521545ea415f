"""Streams records to a browser: browse, follow, search and download, as bare ASGI calls.

Must not know pages. Reading joins no group and commits nothing.
"""
