"""Sinks that write into a database of the test's own."""

from typing import Any

import psycopg

from connectors.plugins.postgres.sink import PostgresSink
from connectors.sdk.connector import SinkTask
from connectors.sdk.testing import MemorySinkContext, parse_config
from tests.connectors.plugins.postgres.conftest import url_of

Database = psycopg.Connection[Any]


def keys(database: Database, **config: str) -> dict[str, Any]:
    told = {name.replace("_", "."): value for name, value in config.items()}
    return parse_config(PostgresSink.definition(), {"connection.url": url_of(database), **told})


def rows(database: Database, query: str = "SELECT * FROM orders ORDER BY 1") -> list[Any]:
    return database.execute(query).fetchall()


def started(context: MemorySinkContext, parsed: dict[str, Any]) -> SinkTask:
    task = PostgresSink().task()
    task.start(context, parsed)
    return task
