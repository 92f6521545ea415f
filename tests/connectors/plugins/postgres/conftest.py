"""Databases of the shared server, which connectors are allowed to reach."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from connectors.sdk.testing import MemorySinkContext
from tests.suite.services import shared_postgres


@pytest.fixture
def database(
    unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection to an empty database of the test's own."""
    monkeypatch.setenv("SAMSA_CONNECT_TARGETS", "127.0.0.1")
    server, name = shared_postgres(), unique("rows").lower().replace("-", "_")
    url = server.make_database(name)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
    finally:
        server.drop_database(name)


@pytest.fixture
def context() -> Iterator[MemorySinkContext]:
    made = MemorySinkContext(connector="sink")
    yield made
    made.close()


def url_of(database: psycopg.Connection[Any]) -> str:
    info = database.info
    return f"jdbc:postgresql://{info.host}:{info.port}/{info.dbname}?user={info.user}"
