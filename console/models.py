"""The console's own tables in the web database; the cluster's tables are elsewhere."""

from django.db import models


class FailedLogin(models.Model):
    """The number of failed logins of one source within one time window.

    A source is an address or an account, stored as a digest: what people type into the wrong field
    belongs in no database.
    """

    source = models.CharField(max_length=64, unique=True)
    failures = models.PositiveIntegerField(default=0)
    window_started_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.source[:8]}: {self.failures}"
