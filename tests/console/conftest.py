"""Fixtures of the console's tests: fresh databases, and people who are signed in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.database import project_home, sqlite_databases

# Before any import of a model, here and in the tests, which needs the project set up.
project_home()

from django.test import Client  # noqa: E402

from console.queries import live, traffic  # noqa: E402
from console.queries.fullness import forecasts  # noqa: E402
from console.queries.reading import last_good  # noqa: E402
from console.queries.topic_table import joins, tables  # noqa: E402
from gateway.access.operations import Role  # noqa: E402
from tests.builders import users  # noqa: E402
from tests.builders.live import Told  # noqa: E402
from tests.builders.traffic import Workers  # noqa: E402

# The real one takes its time on purpose; that it is the real one is a test of the settings.
FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
PASSWORD = users.PASSWORD


@pytest.fixture(autouse=True)
def database(tmp_path: Path, settings: Settings) -> Iterator[None]:
    """Every test has its own two databases, and a console that has read nothing yet."""
    forget_readings()
    settings.PASSWORD_HASHERS = FAST_HASHERS
    with sqlite_databases(tmp_path):
        yield


def forget_readings() -> None:
    """Have the console begin as a new process does."""
    last_good._kept.clear()  # noqa: SLF001 - what a new process begins with
    forecasts.clear()
    tables._kept.clear()  # noqa: SLF001 - the same
    joins._kept.clear()  # noqa: SLF001 - the same


@pytest.fixture(autouse=True)
def told() -> Iterator[Told]:
    """A collector that tells what the test puts into it, and nothing else."""
    collector = Told()
    live.use(collector)
    yield collector
    live.use(None)


@pytest.fixture(autouse=True)
def workers() -> Iterator[Workers]:
    """Workers that have served what the test counts, and nothing else."""
    source = Workers()
    traffic.use(source)
    yield source
    traffic.use(None)


@pytest.fixture
def alice(client: Client) -> Client:
    """A browser in which alice is signed in, who is an admin."""
    client.force_login(users.user("alice"))
    return client


@pytest.fixture
def olga() -> Client:
    """A browser in which olga is signed in, who is an operator."""
    browser = Client()
    browser.force_login(users.user("olga", role=Role.OPERATOR))
    return browser


@pytest.fixture
def victor() -> Client:
    """A browser in which victor is signed in, who is a viewer."""
    browser = Client()
    browser.force_login(users.user("victor", role=Role.VIEWER))
    return browser
