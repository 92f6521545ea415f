"""Serves requests that repeat an earlier one on a faster path, with the same response bytes.

A client that writes to one partition, or reads one, sends the same bytes repeatedly except for a
few numbers. A lane decodes such a request once, on the regular path; later requests with the same
bytes around those numbers need no decoding, no message objects and no encoding. If a lane does not
take a request, which it decides before it changes anything, the request takes the regular path.
"""
