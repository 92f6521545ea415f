"""Databases of connectors for each test, on files and, where it says so, on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import postgres_database, project_home, sqlite_databases
from tests.suite.services import shared_postgres

# Settings are read when a test module imports the first model.
project_home()


@pytest.fixture
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    if getattr(request, "param", "sqlite") == "postgres":
        with postgres_database(shared_postgres()):
            yield
        return
    with sqlite_databases(tmp_path):
        yield
