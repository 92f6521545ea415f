"""Captures that run against a real database, slice by slice, without a cluster."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg

from connectors.plugins.postgres.capture.connector import PostgresCapture
from connectors.sdk.errors import RetriableError
from connectors.sdk.records import SourceRecord
from connectors.sdk.testing import MemorySourceContext, parse_config

# What a busy machine may take for a few records.
PATIENCE_S = 30.0
PREFIX = "shop"


def config(database: psycopg.Connection[Any], **more: str) -> dict[str, str]:
    """Return a config; a slot belongs to the server, so it is named after the database."""
    info = database.info
    written = {key.replace("_", "."): text for key, text in more.items()}
    return {
        "database.hostname": info.host,
        "database.port": str(info.port),
        "database.user": info.user,
        "database.dbname": info.dbname,
        "topic.prefix": PREFIX,
        "slot.name": info.dbname,
        "status.update.interval.ms": "100",
        "slot.retry.delay.ms": "0",
        **written,
    }


class Capture:
    """One capture with stored offsets, whose worker may be replaced by another one."""

    def __init__(self, database: psycopg.Connection[Any], **more: str) -> None:
        self.parsed = parse_config(PostgresCapture.definition(), config(database, **more))
        self.context = MemorySourceContext()
        self.records: list[SourceRecord] = []
        self._begin()

    def _begin(self) -> None:
        self.task = PostgresCapture().task()
        self.task.start(self.context, self.parsed)

    def poll(self, *, stores: bool = True) -> list[SourceRecord]:
        """Poll once, and store what it returns as a slice does, or lose it as a crash does.

        A slot is in use for some moments after its reader has gone; a slice would come again.
        """
        try:
            polled = self.task.poll()
        except RetriableError:
            return []
        self.records += polled
        if stores:
            self.context.store(polled)
            if (passed := self.task.reached()) is not None:
                self.context.keep(*passed)
            if polled or passed is not None:
                self.task.commit(polled)
        return polled

    def poll_until(self, is_there: Callable[[], bool], *, stores: bool = True) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_there():
            assert time.monotonic() < until, [shown(record) for record in self.records]
            self.poll(stores=stores)

    def take(self, count: int, *, stores: bool = True) -> list[tuple[Any, ...]]:
        """Return so many further records, as op, key and row; no fewer, and no more."""
        begin = len(self.records)
        self.poll_until(lambda: len(self.records) >= begin + count, stores=stores)
        told = self.records[begin:]
        assert len(told) == count, [shown(record) for record in told]
        return [shown(record) for record in told]

    def crash(self) -> None:
        """Go on in a process that knows nothing but stored offsets."""
        self.context.close()
        self._begin()

    def restart(self, **more: Any) -> None:
        """Go on with other keys."""
        self.parsed |= {key.replace("_", "."): value for key, value in more.items()}
        self.crash()


def shown(record: SourceRecord) -> tuple[Any, ...]:
    """Return operation, key, and the row as it is afterwards."""
    key = record.key.values if record.key is not None else {}
    value: Mapping[str, Any] = record.value.values if record.value is not None else {}
    after = value.get("after")
    row = tuple(after.values.values()) if after is not None else None
    return value.get("op"), *key.values(), row
