"""Changes of users by several web processes at once, on PostgreSQL, where writers overlap."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from pytest_django import Settings

from gateway.access import selectors, services
from gateway.access.audit import Actor
from gateway.access.services import Refused
from tests.builders import users
from tests.database import postgres_database
from tests.extras import requires
from tests.gateway.access.conftest import FAST_HASHERS
from tests.postgres import postgres_server

pytestmark = [pytest.mark.slow, requires("postgresql")]

PATIENCE_S = 20


@pytest.fixture(autouse=True)
def database(settings: Settings) -> Iterator[None]:
    settings.PASSWORD_HASHERS = FAST_HASHERS
    with postgres_server() as server, postgres_database(server):
        yield


def test_two_admins_who_disable_each_other_at_the_same_time_leave_one() -> None:
    numbers = {name: users.user(name).pk for name in ("alice", "adam")}
    together = Barrier(2)

    def disable(actor: str, other: str) -> bool:
        together.wait(PATIENCE_S)
        try:
            services.set_enabled(actor=Actor(name=actor), number=numbers[other], is_enabled=False)
        except Refused:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(disable, ("alice", "adam"), ("adam", "alice")))

    assert sorted(done) == [False, True]
    assert len(selectors.admins()) == 1
