"""Fixtures of the tests of REST: fresh databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.database import project_home, sqlite_databases

project_home()

FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def database(tmp_path: Path, settings: Settings) -> Iterator[None]:
    settings.PASSWORD_HASHERS = FAST_HASHERS
    with sqlite_databases(tmp_path):
        yield
