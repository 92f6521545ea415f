"""Failed logins counted by several web processes at once, on PostgreSQL, where writers overlap."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from gateway.access.login_limits import MAX_PER_PAIR, Sources, attempt
from tests.database import postgres_database
from tests.extras import requires
from tests.suite.services import shared_postgres

pytestmark = [pytest.mark.slow, requires("postgresql")]

THREADS = 8


@pytest.fixture(autouse=True)
def database() -> Iterator[None]:
    with postgres_database(shared_postgres()):
        yield


def try_once(_: int) -> int:
    try:
        return attempt(Sources(address="10.0.0.1", account="alice"))
    finally:
        connections.close_all()


def test_attempts_at_the_same_time_are_all_counted() -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        waits = list(threads.map(try_once, range(4 * THREADS)))

    assert waits.count(0) == MAX_PER_PAIR
