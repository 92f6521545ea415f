"""What time it is for leases: the database's own, which all hosts share."""

from datetime import datetime

from django.db import connections
from django.utils import timezone

from connectors.database import CONNECT


def now() -> datetime:
    """Return the time of the database's clock; a file has the clock of its host."""
    connection = connections[CONNECT]
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        # The beginning of the transaction would be too early by as long as it has waited.
        cursor.execute("SELECT clock_timestamp()")
        told: datetime = cursor.fetchone()[0]
    return told
