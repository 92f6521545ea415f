"""Reads records without a consumer: a bounded read with one answer, or a stream.

`question` parses the request, `record_json` formats records, `read` and `stream` answer.
"""
