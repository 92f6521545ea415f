"""Fixtures of the console's tests: fresh databases, and somebody who is signed in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import project_home, sqlite_databases

# Before any import of a model, here and in the tests, which needs the project set up.
project_home()

from django.contrib.auth.models import User  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from console.queries.reading import last_good  # noqa: E402

# The real one takes its time on purpose; that it is the real one is a test of the settings.
FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
PASSWORD = "open-sesame-123"  # noqa: S105 - of nobody


@pytest.fixture(autouse=True)
def database(tmp_path: Path) -> Iterator[None]:
    """Every test has its own two databases, and a console that has read nothing yet."""
    last_good._kept.clear()  # noqa: SLF001 - what a new process begins with
    with sqlite_databases(tmp_path), override_settings(PASSWORD_HASHERS=FAST_HASHERS):
        yield


@pytest.fixture
def client() -> Client:
    """A browser of nobody."""
    return Client()


@pytest.fixture
def alice(client: Client) -> Client:
    """A browser in which alice is signed in."""
    client.force_login(User.objects.create_user("alice", password=PASSWORD))
    return client
