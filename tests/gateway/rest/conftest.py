"""Fixtures of the tests of REST: fresh databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import project_home, sqlite_databases

project_home()

from django.test.utils import override_settings  # noqa: E402

FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[None]:
    with sqlite_databases(tmp_path), override_settings(PASSWORD_HASHERS=FAST_HASHERS):
        yield
