"""Records into objects of S3, and of stores that speak like it."""

from connectors.plugins.s3.connector import S3Sink

CONNECTORS = (S3Sink,)
