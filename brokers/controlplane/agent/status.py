"""Writes the status of a running agent into its home, once a second.

A quiet cluster has no changes whose end would show whether the database takes any: so the agent
takes the lock of all writers from time to time, without a write, and writes while changes fail.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from brokers import agent_status
from brokers.agent_status import Condition
from brokers.clock import Clock
from brokers.cluster.store import MetadataRegressed
from brokers.controlplane.agent.files import Files
from brokers.controlplane.logs import log
from brokers.controlplane.store import OrmStore

EVERY_S: Final = 1.0
# The database is polled twenty times a second, or twice; this is far from both.
AWAY_AFTER_MS: Final = 5_000
# A change takes milliseconds, and up to three seconds behind the longest transaction of a page.
WAITS_AFTER_MS: Final = 5_000
# With the second that a status takes, a lock that is held is known in ten seconds.
PROOF_MS: Final = 3_000


async def keep_status(store: OrmStore, home: Path, clock: Clock, files: Files) -> None:
    """Write the status once a second; remove it at the end."""
    try:
        while True:
            try:
                told = condition_of(store, clock, other_files=files.trouble)
                # A disk that hangs must delay only this.
                await asyncio.to_thread(agent_status.write, home, told)
            except OSError as error:
                log.limited("status.not_written", error=str(error))
            await asyncio.sleep(EVERY_S)
    finally:
        agent_status.remove(home)


async def keep_proving(store: OrmStore, agent_id: str) -> None:
    """Find out whether changes are possible, while no other write shows it."""
    while True:
        await asyncio.sleep(EVERY_S)
        # The status has the error.
        with suppress(ConnectionError, MetadataRegressed):
            if store.writes.is_failing or store.writes.proof_age_ms > PROOF_MS:
                await store.prove(agent_id=agent_id)


def condition_of(store: OrmStore, clock: Clock, *, other_files: str = "") -> Condition:
    name, message = agent_status.WELL, ""
    writes = store.writes
    if store.regressed is not None:
        name, message = agent_status.REGRESSED, store.regressed.message
    elif store.read_age_ms > AWAY_AFTER_MS:
        name = agent_status.DATABASE_AWAY
        message = f"the database has not answered for {store.read_age_ms // 1000} s"
    elif writes.oldest_ms > WAITS_AFTER_MS:
        name = agent_status.CHANGES_WAIT
        reason = writes.last_refusal if writes.is_failing else "the database has not answered"
        message = f"no change for {writes.oldest_ms // 1000} s: {reason}"
    return Condition(
        cluster_id=store.cluster_id,
        pid=os.getpid(),
        version=store.image.version,
        database_age_ms=store.read_age_ms,
        condition=name,
        message=message,
        monotonic_ms=int(1000 * clock.monotonic()),
        written_at_ms=clock.now_ms(),
        oldest_write_ms=writes.oldest_ms,
        last_refusal=writes.last_refusal,
        last_refusal_at_ms=writes.last_refusal_at_ms,
        other_files=other_files,
    )
