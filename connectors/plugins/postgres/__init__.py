"""Reads and writes tables of PostgreSQL. Only tasks import its client."""

from connectors.plugins.postgres.capture.connector import PostgresCapture
from connectors.plugins.postgres.sink import PostgresSink
from connectors.plugins.postgres.source import PostgresSource

CONNECTORS = (PostgresSource, PostgresSink, PostgresCapture)
