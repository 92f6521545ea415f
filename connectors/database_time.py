"""Reads the time for leases from the database, whose clock all hosts share."""

from datetime import datetime

from django.db import connections
from django.utils import timezone

from connectors.database import CONNECT


def now() -> datetime:
    """Return the time of the database's clock; with a file, that of the host."""
    connection = connections[CONNECT]
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        # The start of the transaction would be too early by the time spent waiting for locks.
        cursor.execute("SELECT clock_timestamp()")
        told: datetime = cursor.fetchone()[0]
    return told
