"""Descriptions of many groups in few requests, compared with those of the library."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from brokers.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from brokers.protocol.schema import Message
from gateway.kafka import group_overview, requests
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.values import Group, GroupState, GroupType
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


def test_list_equals_the_descriptions_of_the_library(
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


def test_one_request_describes_a_hundred_groups(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def counted(connection: Connection, request: Message, *others: Any, **limits: Any) -> Any:
        asked.append(request.KEY)
        return requests.ask(connection, request, *others, **limits)

    monkeypatch.setattr(group_overview, "ask", counted)

    shown(connection)

    assert Counter(asked) == {15: 3, 16: 1, 69: 3}


def test_groups_of_failed_requests_are_described_by_the_library(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = by_library(connection)
    monkeypatch.setattr(group_overview, "MAX_PIECE_BYTES", 100)

    found = shown(connection)

    assert [replace(group, members=()) for group in found] == wanted


def test_brokers_with_a_login_are_left_to_the_library(connection: Connection) -> None:
    secured = replace(connection, properties={"security.protocol": "SASL_PLAINTEXT"})

    found = group_overview.overview(
        secured, Admin(connection).cluster().brokers, Groups(connection).summaries()
    )

    assert found == {}


@pytest.mark.parametrize(
    ("state", "kinds", "expected"),
    [
        ("Stable", [1, 1], (GroupState.STABLE, False)),
        ("Assigning", [1, 0], (GroupState.ASSIGNING, True)),
        ("Reconciling", [-1], (GroupState.RECONCILING, False)),
        ("OfTomorrow", [], (None, False)),
    ],
)
def test_states_and_protocols_that_the_library_does_not_know_are_read(
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    kinds: list[int],
    expected: tuple[GroupState | None, bool],
) -> None:
    group = DescribedGroup(
        group_id="g", group_state=state, members=[Member(member_type=kind) for kind in kinds]
    )
    answer = ConsumerGroupDescribeResponse(groups=[group])
    monkeypatch.setattr(group_overview, "ask", lambda *_, **__: answer)

    describe = group_overview.DESCRIBES[GroupType.CONSUMER]
    [found] = describe(Connection(bootstrap="127.0.0.1:1"), ["g"]).values()

    assert (found.state, found.is_mixed) == expected


def test_one_group_is_refined_with_its_exact_state(connection: Connection) -> None:
    asking, brokers = Groups(connection), Admin(connection).cluster().brokers
    [mixed, consumer, classic] = asking.describe(["mixed", "consumer-1-ä", "classic-1"])

    assert asking.refine(mixed, brokers) == replace(mixed, is_mixed=True)
    assert asking.refine(mixed, [replace(one, port=1) for one in brokers]) == mixed
    assert asking.refine(consumer, brokers) == consumer
    assert asking.refine(classic, brokers) == classic
