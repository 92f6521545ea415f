"""Finds out whether the other SQLite files of a home take writes: users' and connectors'.

Their writers are other processes, so the agent, which tells how the home's databases are, takes the
lock of each of them for a moment. With one database for all, the control plane's proof is enough.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connections, transaction

from brokers.clock import Clock
from brokers.controlplane import database

EVERY_S: Final = 3.0
# A transaction takes milliseconds, also behind others.
LOCK_S: Final = 1.0
# As of a change of the cluster.
WAITS_AFTER_S: Final = 5.0


class Files:
    """Since when each file refuses writes, and why. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[str, tuple[float, str]] = {}

    @property
    def trouble(self) -> str:
        """Return which files take no writes, and why; empty if all do."""
        now = self._clock.monotonic()
        return "; ".join(
            f"{name} takes no writes for {now - since:.0f} s: {reason}"
            for name, (since, reason) in self._refused.items()
            if now - since > WAITS_AFTER_S
        )

    async def run(self) -> None:
        """Look until cancelled."""
        while not settings.IS_ONE_DATABASE:
            for alias in sorted({*connections} - {database.alias()}):
                began = self._clock.monotonic()
                self.take(alias, await asyncio.to_thread(refusal, alias), began=began)
            await asyncio.sleep(EVERY_S)

    def take(self, alias: str, reason: str, *, began: float) -> None:
        """Note the result of one look: an empty reason if the file takes writes."""
        name = Path(connections.settings[alias]["NAME"]).name
        since, _ = self._refused.pop(name, (began, ""))
        if reason:
            self._refused[name] = (since, reason)


def refusal(alias: str) -> str:
    """Return why a file takes no writes; empty if it does. Writes nothing. Blocks."""
    made = database.own_connection(lock_timeout_s=LOCK_S, of=alias)
    connections[alias] = made
    try:
        with transaction.atomic(using=alias):
            return ""
    except DatabaseError as error:
        return database.blamed(str(error).strip(), made)
    finally:
        with suppress(DatabaseError):
            made.close()
        del connections[alias]
