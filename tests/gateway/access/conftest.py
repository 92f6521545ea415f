"""Fixtures of the tests of access rights: fresh databases, and a clock to move."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.database import project_home, sqlite_databases

project_home()

from django.utils import timezone  # noqa: E402

FAST_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def database(tmp_path: Path, settings: Settings) -> Iterator[None]:
    settings.PASSWORD_HASHERS = FAST_HASHERS
    settings.SAMSA_HOME, settings.SAMSA_SECRETS = tmp_path, tmp_path / "secrets"
    with sqlite_databases(tmp_path):
        yield


class Clock:
    """The time that Django tells, moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 19, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **of: float) -> None:
        self.now += timedelta(**of)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timezone, "now", made)
    return made
