"""What a list shows of many groups, in few questions, against what the library says of each."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.kafka import group_overview, wire
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.values import Group, GroupState
from gateway.kafka.wire import Reader
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, MadeUpMember, served

pytestmark = pytest.mark.slow
MEMBERS = [
    MadeUpMember(id="m-1", client_id="ä", assignment={"orders": [0, 1]}),
    MadeUpMember(id="m-2", assignment={"orders": [2]}, target={"orders": [1, 2], "clicks": [0]}),
]
MANY = 250


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    service = GroupService()
    service.groups |= {"empty": MadeUpGroup(), "idle": MadeUpGroup(type="consumer")}
    service.groups["mixed"] = MadeUpGroup(
        type="consumer", members=[replace(MEMBERS[0], protocol=0), MEMBERS[1]]
    )
    service.groups |= {f"classic-{n}": MadeUpGroup(members=MEMBERS) for n in range(MANY)}
    service.groups |= {
        f"consumer-{n}-ä": MadeUpGroup(type="consumer", members=MEMBERS) for n in range(MANY)
    }
    folder = tmp_path_factory.mktemp("broker")
    with served(service), broker_beside(folder, topics={"orders": 3, "clicks": 1}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


def shown(connection: Connection) -> list[Group]:
    asking = Groups(connection)
    return asking.overview(asking.summaries(), Admin(connection).cluster().brokers)


def by_library(connection: Connection) -> list[Group]:
    asking = Groups(connection)
    names = [summary.name for summary in asking.summaries()]
    return [replace(group, members=()) for group in asking.find(names).values()]


def test_the_list_says_what_the_library_says_of_each(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = by_library(connection)
    described: list[str] = []

    def find(_self: Groups, names: Iterable[str]) -> dict[str, Group]:
        described.extend(names)
        return {}

    monkeypatch.setattr(Groups, "find", find)

    found = shown(connection)

    assert described == []
    assert len(found) == 2 * MANY + 3
    assert [group.name for group in found if group.is_mixed] == ["mixed"]
    assert [replace(group, is_mixed=False) for group in found] == wanted


def test_a_question_is_about_a_hundred_groups(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(connection: Connection, api: int, *others: Any, max_bytes: int) -> Reader:
        asked.append(api)
        return wire.ask(connection, api, *others, max_bytes=max_bytes)

    monkeypatch.setattr(group_overview, "ask", counted)

    shown(connection)

    assert sorted(asked) == [15] * 3 + [16] + [69] * 3


def test_what_cannot_be_found_out_is_asked_of_the_library(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = by_library(connection)
    monkeypatch.setattr(group_overview, "MAX_PIECE_BYTES", 100)

    found = shown(connection)

    assert [replace(group, members=()) for group in found] == wanted


def test_brokers_that_ask_for_a_login_are_asked_by_the_library(connection: Connection) -> None:
    secured = replace(connection, properties={"security.protocol": "SASL_PLAINTEXT"})

    found = group_overview.overview(
        secured, Admin(connection).cluster().brokers, Groups(connection).summaries()
    )

    assert found == {}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack(">iihh", 0, 2**31 - 1, 0, 32_000),
        struct.pack(">ii", 0, 1) + b"\0\0\0\5ab",
    ],
)
def test_an_answer_that_lies_about_its_lengths_is_none(data: bytes) -> None:
    with pytest.raises(struct.error):
        group_overview._classic(Reader(data))  # noqa: SLF001 - what reads bytes from outside
    with pytest.raises(struct.error):
        group_overview._consumers(Reader(b"\0\0\0\0\0\xff\xff\xff\xff\xff\x01" + data))  # noqa: SLF001


def consumers(state: str, kinds: list[int]) -> bytes:
    """Return an answer about one group of the consumer protocol, as Kafka writes it."""
    member = b"\2m\0\0" + bytes(4) + b"\2c\2h" + b"\1\0" + 2 * b"\1\0"
    members = b"".join(member + struct.pack(">b", kind) + b"\0" for kind in kinds)
    words = wire.compact("g") + wire.compact(state)
    group = b"\0\0\0" + words + bytes(8) + wire.compact("uniform")
    ended = bytes(4) + b"\0"
    return b"\0" + bytes(4) + b"\2" + group + wire.varint(len(kinds) + 1) + members + ended


@pytest.mark.parametrize(
    ("state", "kinds", "told"),
    [
        ("Stable", [1, 1], (GroupState.STABLE, False)),
        ("Assigning", [1, 0], (GroupState.ASSIGNING, True)),
        ("Reconciling", [-1], (GroupState.RECONCILING, False)),
        ("OfTomorrow", [], (None, False)),
    ],
)
def test_states_and_protocols_that_the_library_does_not_tell_are_read(
    state: str, kinds: list[int], told: tuple[GroupState | None, bool]
) -> None:
    [found] = group_overview._consumers(Reader(consumers(state, kinds))).values()  # noqa: SLF001

    assert (found.state, found.is_mixed) == told


def test_one_group_is_told_with_its_state(connection: Connection) -> None:
    asking, brokers = Groups(connection), Admin(connection).cluster().brokers
    [mixed, consumer, classic] = asking.describe(["mixed", "consumer-1-ä", "classic-1"])

    assert asking.refined(mixed, brokers) == replace(mixed, is_mixed=True)
    assert asking.refined(mixed, [replace(one, port=1) for one in brokers]) == mixed
    assert asking.refined(consumer, brokers) == consumer
    assert asking.refined(classic, brokers) == classic
