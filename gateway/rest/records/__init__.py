"""Records out of topics for whoever has no session: a bounded read in one piece, or a stream.

`question` says what is asked, `shown` how a record is written, `read` and `stream` answer.
"""
