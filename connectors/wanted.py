"""Marks which pools of workers connectors need, for the supervisor of the home."""

import logging
from typing import Final

from django.conf import settings

from connectors.models import Connector
from connectors.runtime.pools import PLAIN, SPARK

log: Final = logging.getLogger(__name__)
# The file names that the supervisor of the home looks for, by pool of workers.
MARKS: Final = {PLAIN: "connect.wanted", SPARK: "connect.spark.wanted"}


def note(pool: str = PLAIN) -> None:
    """Create the marks; if the disk is full, the next connector tries again."""
    try:
        for one in {PLAIN, pool}:
            (settings.SAMSA_HOME / MARKS[one]).touch(mode=0o600)
    except OSError as error:
        log.warning("connect.not_marked reason=%r", str(error))


def take_back(cluster: str, pool: str = PLAIN) -> bool:
    """Remove the mark if no connector needs the pool; return whether it was removed."""
    if not is_empty(cluster, pool):
        return False
    try:
        (settings.SAMSA_HOME / MARKS[pool]).unlink(missing_ok=True)
    except OSError as error:
        log.warning("connect.not_unmarked reason=%r", str(error))
        return False
    # A connector created in between has set its mark before this removed it.
    if not is_empty(cluster, pool):
        note(pool)
        return False
    return True


def is_empty(cluster: str, pool: str = PLAIN) -> bool:
    """Return whether no connector needs a pool; all need the plain one."""
    rows = Connector.objects.filter(cluster=cluster)
    return not (rows.filter(pool=pool) if pool else rows).exists()
