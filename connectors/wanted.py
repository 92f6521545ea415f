"""Marks which pools of workers connectors need, for the supervisor of the home."""

import logging
from typing import Final

from django.conf import settings

from connectors.models import Connector
from connectors.runtime.pools import PLAIN, SPARK

log: Final = logging.getLogger(__name__)
# As the supervisor of the home looks for them, by the pool of workers that is wanted.
MARKS: Final = {PLAIN: "connect.wanted", SPARK: "connect.spark.wanted"}


def note(pool: str = PLAIN) -> None:
    """Leave the marks; where the disk is full, the next connector does."""
    try:
        for one in {PLAIN, pool}:
            (settings.SAMSA_HOME / MARKS[one]).touch(mode=0o600)
    except OSError as error:
        log.warning("connect.not_marked reason=%r", str(error))


def take_back(cluster: str, pool: str = PLAIN) -> bool:
    """Take the mark away where no connector needs a pool; tell whether that is so."""
    if not is_empty(cluster, pool):
        return False
    try:
        (settings.SAMSA_HOME / MARKS[pool]).unlink(missing_ok=True)
    except OSError as error:
        log.warning("connect.not_unmarked reason=%r", str(error))
        return False
    # One that was made in between has left its mark before this took it away.
    if not is_empty(cluster, pool):
        note(pool)
        return False
    return True


def is_empty(cluster: str, pool: str = PLAIN) -> bool:
    """Tell whether no connector needs a pool; all need the plain one."""
    rows = Connector.objects.filter(cluster=cluster)
    return not (rows.filter(pool=pool) if pool else rows).exists()
