"""Writes the status of a running agent into its home, once a second."""

import asyncio
import os
from pathlib import Path
from typing import Final

from brokers.clock import Clock
from brokers.controlplane import condition
from brokers.controlplane.condition import Condition
from brokers.controlplane.logs import log
from brokers.controlplane.store import OrmStore

EVERY_S: Final = 1.0
# The database is polled twenty times a second, or twice; this is far from both.
AWAY_AFTER_MS: Final = 5_000


async def keep_status(store: OrmStore, home: Path, clock: Clock) -> None:
    """Write the status once a second; remove it at the end."""
    try:
        while True:
            try:
                # A disk that hangs must delay only this.
                await asyncio.to_thread(condition.write, home, condition_of(store, clock))
            except OSError as error:
                log.limited("status.not_written", error=str(error))
            await asyncio.sleep(EVERY_S)
    finally:
        condition.remove(home)


def condition_of(store: OrmStore, clock: Clock) -> Condition:
    name, message = condition.WELL, ""
    if store.regressed is not None:
        name, message = condition.REGRESSED, store.regressed.message
    elif store.read_age_ms > AWAY_AFTER_MS:
        name = condition.DATABASE_AWAY
        message = f"the database has not answered for {store.read_age_ms // 1000} s"
    return Condition(
        cluster_id=store.cluster_id,
        pid=os.getpid(),
        version=store.image.version,
        database_age_ms=store.read_age_ms,
        condition=name,
        message=message,
        monotonic_ms=int(1000 * clock.monotonic()),
        written_at_ms=clock.now_ms(),
    )
