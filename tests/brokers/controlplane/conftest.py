"""Fixtures of the control plane's tests: databases of both kinds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import postgres_database, sqlite_databases
from tests.extras import requires
from tests.postgres import PostgresServer, postgres_server
from tests.suite.services import shared_postgres


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """Return the server of the run; see `own_postgres` for what that is not good for."""
    return shared_postgres()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """Start a server for a test that stops it."""
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
