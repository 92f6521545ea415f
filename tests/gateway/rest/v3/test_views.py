"""A list that is answered in pieces, over a real socket."""

from collections.abc import Callable, Iterator, Sequence
from http.client import IncompleteRead
from typing import Any

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.errors import failure
from gateway.kafka.pool import Pool
from gateway.rest.v3 import configs
from tests.builders import tokens
from tests.database import sqlite_databases
from tests.fakes.broker_thread import broker_beside
from tests.fakes.whole_door import WholeDoor, whole_door

pytestmark = pytest.mark.slow

CLUSTER = "the-cluster-of-a-test1"
TOPICS = {f"topic-{number}": 1 for number in range(5)}
ALL = f"/v3/clusters/{CLUSTER}/topics/-/configs"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeDoor]:
    folder = tmp_path_factory.mktemp("door")
    with (
        sqlite_databases(folder),
        broker_beside(tmp_path_factory.mktemp("broker"), topics=TOPICS) as broker,
        whole_door(folder, broker.bootstrap, cluster=CLUSTER) as found,
    ):
        found.token = tokens.token(grants=tokens.EVERYTHING)
        yield found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Two topics make a piece; return what was asked for in one question each."""
    questions: list[Sequence[str]] = []
    find = Admin.find_configs

    def noted(admin: Admin, names: Sequence[str]) -> Any:
        questions.append(list(names))
        return find(admin, names)

    monkeypatch.setattr(configs, "TOPICS_AT_ONCE", 2)
    monkeypatch.setattr(Admin, "find_configs", noted)
    return questions


def test_a_long_list_is_asked_for_and_told_in_pieces(
    door: WholeDoor, asked: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pieces = door.ask("GET", ALL)
    monkeypatch.setattr(configs, "TOPICS_AT_ONCE", 50)
    whole = door.ask("GET", ALL)

    assert [len(names) for names in asked] == [2, 2, 1, 5]
    assert (in_pieces.status, in_pieces.headers["content-type"]) == (200, "application/json")
    assert "content-length" not in in_pieces.headers
    assert in_pieces.json() == whole.json()
    assert {one["topic_name"] for one in whole.json()["data"]} == set(TOPICS)


@pytest.mark.usefixtures("asked")
def test_a_topic_that_is_deleted_meanwhile_is_left_out(
    door: WholeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Admin, "topics", with_one_more(Admin.topics))

    answer = door.ask("GET", ALL)

    assert {one["topic_name"] for one in answer.json()["data"]} == set(TOPICS)


def with_one_more(topics: Callable[[Admin], Any]) -> Callable[[Admin], Any]:
    def found(admin: Admin) -> Any:
        [first, *others] = topics(admin)
        gone = type(first)(name="gone", partitions=1, replication_factor=1, is_internal=False)
        return [gone, first, *others]

    return found


@pytest.mark.usefixtures("asked")
def test_what_fails_before_the_first_piece_has_a_status(
    door: WholeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(admin: Admin, names: Sequence[str]) -> Any:
        raise failure("REQUEST_TIMED_OUT", "the cluster")

    monkeypatch.setattr(Admin, "find_configs", fail)

    assert door.ask("GET", ALL).code == (500, 50003)


@pytest.mark.usefixtures("asked")
def test_what_fails_later_breaks_the_answer_off(
    door: WholeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = Admin.find_configs

    def fail(admin: Admin, names: Sequence[str]) -> Any:
        if "topic-4" in names:
            raise failure("REQUEST_TIMED_OUT", "the cluster")
        return find(admin, names)

    monkeypatch.setattr(Admin, "find_configs", fail)

    with pytest.raises(IncompleteRead):
        door.ask("GET", ALL)


def test_a_change_tells_brokers_for_whom_it_is_made(door: WholeDoor) -> None:
    token = tokens.token("terraform", grants=tokens.EVERYTHING)
    shown = {"authorization": f"Bearer {token}"}
    seen: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pool, "_made", noted(Pool._made, seen))  # noqa: SLF001 - where clients begin

        made = door.ask("POST", ALL.replace("/-/configs", ""), {"topic_name": "new"}, **shown)

    assert made.status == 201
    assert seen == ["samsa-gateway token:terraform"]


def noted(made: Callable[[Pool, str], Any], seen: list[str]) -> Callable[[Pool, str], Any]:
    def make(pool: Pool, client_id: str) -> Any:
        clients = made(pool, client_id)
        seen.append(clients.admin._connection.client_id)  # noqa: SLF001 - what brokers are told
        return clients

    return make
