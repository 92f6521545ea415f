"""Captures that end with their test, so that their slots can be dropped."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.connectors.plugins.postgres.capture.captures import Capture


@pytest.fixture
def capture(database: psycopg.Connection[Any]) -> Iterator[Callable[..., Capture]]:
    """Return what begins a capture of the test's database."""
    begun: list[Capture] = []

    def begin(**more: str) -> Capture:
        begun.append(Capture(database, **more))
        return begun[-1]

    yield begin
    for one in begun:
        one.context.close()
