"""What is answered before Django: as closed as its pages, whichever addresses there are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client

from console.events import endpoint as events
from console.events import running
from console.messages import endpoint as messages
from gateway.access.operations import Role
from gateway.middleware import HEADERS
from gateway.ws import description
from tests.builders import users
from tests.console import cluster_rows
from tests.database import FILES, forget, sqlite_databases
from tests.gateway.test_health import ask

CLUSTER: Final = cluster_rows.CLUSTER_ID
# What each is asked for, by somebody who means well; a new address needs a row.
QUERIES: Final = {
    events.PATH: f"topic=cluster:{CLUSTER}",
    messages.STREAM: f"cluster={CLUSTER}&topic=orders",
    messages.EXPORT: f"cluster={CLUSTER}&topic=orders&form=csv",
    messages.RECORD: f"cluster={CLUSTER}&topic=orders&partition=0&offset=0&part=value",
}
WITH_RECORDS: Final = tuple(messages.ROUTES)


@pytest.fixture(autouse=True)
def database(tmp_path: Path) -> Iterator[None]:
    with sqlite_databases(tmp_path):
        cluster_rows.topic(cluster_rows.cluster(), "orders")
        yield
        # The thread that asks for all streams stays, and so would its connections to these files.
        running.watch._thread.submit(forget_all).result()  # noqa: SLF001


def forget_all() -> None:
    connections.close_all()
    for alias in FILES:
        forget(alias)


def cookie_of(role: Role | None) -> str:
    browser = Client()
    browser.force_login(users.user("somebody", role=role))
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


def test_every_address_before_django_is_known_here() -> None:
    assert set(QUERIES) == {events.PATH, *messages.ROUTES}


@pytest.mark.parametrize("path", QUERIES)
def test_nobody_is_answered_without_signing_in(path: str) -> None:
    status, headers, _body = ask(path, query=QUERIES[path])

    assert status == 401
    assert {name: headers[name.lower()] for name in HEADERS} == HEADERS


def test_the_description_of_frames_is_for_everybody() -> None:
    status, headers, _body = ask(description.PATH)

    assert (status, headers["content-type"]) == (200, "application/json")


@pytest.mark.parametrize("path", QUERIES)
def test_a_session_that_was_made_up_is_none(path: str) -> None:
    cookie = f"{settings.SESSION_COOKIE_NAME}={'a' * 32}"

    assert ask(path, query=QUERIES[path], cookie=cookie)[0] == 401


@pytest.mark.parametrize("path", WITH_RECORDS)
def test_a_viewer_is_refused_what_holds_records(path: str) -> None:
    status, _headers, body = ask(path, query=QUERIES[path], cookie=cookie_of(Role.VIEWER))

    assert status == 403
    assert b"read payloads" in body


@pytest.mark.parametrize("path", QUERIES)
def test_whoever_has_no_right_at_all_is_refused(path: str) -> None:
    assert ask(path, query=QUERIES[path], cookie=cookie_of(None))[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", QUERIES)
def test_nothing_can_be_sent_to_them(path: str, method: str) -> None:
    assert ask(path, query=QUERIES[path], method=method)[0] == 405
