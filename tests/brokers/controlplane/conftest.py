"""Fixtures of the control plane's tests: databases of both kinds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import postgres_database, sqlite_databases
from tests.extras import requires
from tests.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=[requires("postgresql"), pytest.mark.slow])]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Point Django at a fresh database; the name of its kind."""
    if request.param == "sqlite":
        with sqlite_databases(tmp_path):
            yield "sqlite"
    else:
        with postgres_database(request.getfixturevalue("postgres")):
            yield "postgres"
