"""Writes records to objects of S3, and of compatible stores."""

from connectors.plugins.s3.connector import S3Sink

CONNECTORS = (S3Sink,)
