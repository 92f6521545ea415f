"""Shorter ways for requests that are like one seen before, answered with the same bytes.

A client that writes to one partition, or reads one, sends the same bytes again and again but for a
few numbers. A lane decodes such a request once, in the regular way; what is equal later, byte for
byte beside those numbers, needs no decoding, no message objects and no encoding. Whatever a lane
does not take, for any reason and before anything has happened, goes the regular way.
"""
