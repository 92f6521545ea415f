"""Tables of PostgreSQL, read and written. Its client is imported by tasks, not by this package."""

from connectors.plugins.postgres.capture.connector import PostgresCapture
from connectors.plugins.postgres.sink import PostgresSink
from connectors.plugins.postgres.source import PostgresSource

CONNECTORS = (PostgresSource, PostgresSink, PostgresCapture)
