"""Calls about groups of every client, errors included: client × call × expected, and Kafka's own.

The rows stand in clients/group_table.py. They run against our broker and against Apache Kafka, so
that what is demanded of ours is what Kafka answers.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from brokers.protocol.errors import ErrorCode
from tests.extras import requires
from tests.interop.clients.admin import Refused
from tests.interop.clients.group_calls import CALLS
from tests.interop.clients.group_stage import OTHER, PARTITIONS, READ, Stage, set_up
from tests.interop.clients.group_table import CLIENTS, NO_GROUPS, ROWS, Client, Row
from tests.interop.clients.groups_confluent import ConfluentGroups
from tests.interop.clients.target import KAFKA, SAMSA, Kind
from tests.oracles.confluent_client import QUIET, create_topic
from tests.raw_groups import Coordinated, GroupError

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its brokers run once.
    pytest.mark.xdist_group("admin-groups"),
]

SETTLE_SECONDS = 5
LOOK_SECONDS = 0.01
NUMBERS = itertools.count()
# So many offsets with the longest text are more than a batch, which takes 1 MiB.
WIDE, WIDTH = "wide", 300


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, id=kind.name, marks=kind.marks) for kind in (SAMSA, KAFKA)],
)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture(scope="module")
def bootstrap(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kind.start(tmp_path_factory.mktemp("groups"), 1) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, **QUIET})
        for topic, partitions in ((READ, PARTITIONS), (OTHER, PARTITIONS), (WIDE, WIDTH)):
            create_topic(admin, topic, partitions, {})
        # The first group has the topic of all groups created and loaded, which clients hear of.
        set_up(running.bootstrap, "first", Stage.SIMPLE).close()
        yield running.bootstrap


@pytest.mark.parametrize(
    "client", [pytest.param(each, id=each.name, marks=requires(*each.needs)) for each in CLIENTS]
)
def test_every_call_about_groups_is_answered_as_kafka_answers_it(
    bootstrap: str, client: Client
) -> None:
    door = client.open(bootstrap)
    try:
        found = [
            difference
            for row in ROWS
            if row.call not in client.lacks and row.name not in client.cannot
            for difference in differences(door, client, bootstrap, row)
        ]
    finally:
        door.close()

    assert found == []


def test_a_commit_that_no_batch_holds_is_refused_whole_and_smaller_ones_are_kept(
    bootstrap: str,
) -> None:
    opened = Coordinated(bootstrap, "large")
    offsets = {(WIDE, index): 1 for index in range(WIDTH)}
    text = "m" * 4_000

    with pytest.raises(GroupError) as refused:
        opened.commit(offsets, metadata=text)

    # Not INVALID_COMMIT_OFFSET_SIZE, which older releases of Kafka said.
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert opened.offsets() == {}
    opened.commit(offsets)
    assert opened.offsets() == offsets
    opened.close()


def test_a_group_whose_offsets_no_batch_holds_is_deleted_where_kafka_cannot(
    kind: Kind, bootstrap: str
) -> None:
    # Each tombstone repeats the name of the group.
    group = "g" * 4_000
    with closing(Coordinated(bootstrap, group)) as opened:
        for first in (0, WIDTH // 2):
            opened.commit({(WIDE, first + index): 1 for index in range(WIDTH // 2)})
        door = ConfluentGroups(bootstrap)

        codes = door.delete_groups([group])

        is_ours = kind is SAMSA
        assert codes == {group: ErrorCode.NONE if is_ours else ErrorCode.UNKNOWN_SERVER_ERROR}
        assert (opened.listed() is None) == is_ours
        assert len(opened.offsets()) == (0 if is_ours else WIDTH)


def differences(door: object, client: Client, bootstrap: str, row: Row) -> Iterator[str]:
    """Set a row's stage, make its call, look at what is left, and say what is wrong with it."""
    number = next(NUMBERS)
    names = {stage: f"{number}-{stage}" for stage in (row.stage, *row.beside)}
    opened = {stage: set_up(bootstrap, name, stage) for stage, name in names.items()}
    group = names[row.stage]
    try:
        answer = plain(answer_of(door, row, names), row, names, client)
        expected, _ = client.differs.get(row.name, (row.expected, ""))
        expected = without(expected, row, client)
        if answer != expected:
            yield f"{row.name}: {answer} != {expected}"
        if row.look is not None:
            left = settled(row.look, opened[row.stage], row.left)
            if left != row.left:
                yield f"{row.name}: {left} is left of {group}, not {row.left}"
    finally:
        for each in opened.values():
            each.close()


def answer_of(door: object, row: Row, names: Mapping[Any, str]) -> Any:
    given: dict[str, Any] = {}
    if row.call == "delete_groups":
        given["groups"] = list(names.values())
    elif row.call not in ("list_groups", "features"):
        given["group"] = names[row.stage]
    try:
        return getattr(door, row.call)(**given, **row.arguments)
    except Refused as refusal:
        return refusal.code


def plain(answer: Any, row: Row, names: Mapping[Any, str], client: Client) -> Any:
    """Take what the row is about out of an answer."""
    if isinstance(answer, ErrorCode):
        return answer
    if row.call == "list_groups":
        return without(answer.get(names[row.stage]), row, client)
    if row.call == "describe_group":
        return without(answer, row, client)
    if row.call == "delete_groups":
        return {stage: answer[name] for stage, name in names.items()}
    if row.call == "features":
        return answer["group.version"]
    return answer


def without(told: Any, row: Row, client: Client) -> Any:
    """Leave out what the client does not tell."""
    if not isinstance(told, dict):
        return told
    kept = {key: value for key, value in told.items() if f"{row.call} {key}" not in client.untold}
    if "members" in kept:
        kept["members"] = [without(member, row, client) for member in kept["members"]]
    return kept


def settled(look: Callable[[Coordinated], Any], opened: Coordinated, wanted: Any) -> Any:
    """Look again until there is what is wanted: a group may need a moment after a member left."""
    deadline, pause = time.monotonic() + SETTLE_SECONDS, threading.Event()
    while (found := look(opened)) != wanted and time.monotonic() < deadline:
        pause.wait(LOOK_SECONDS)
    return found


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_has_each_call_about_groups_or_a_reason_why_not(
    client: Client, report: Callable[[str], None]
) -> None:
    has = {call for call in CALLS if hasattr(client.open, call)}

    assert has | client.lacks.keys() == set(CALLS)
    assert not has & client.lacks.keys()
    names = {row.name for row in ROWS}
    assert client.differs.keys() | client.cannot.keys() <= names
    lines = [f"{client.name} lacks {call}: {reason}" for call, reason in client.lacks.items()]
    lines += [f"{client.name} tells no {what}: {reason}" for what, reason in client.untold.items()]
    lines += [f"{client.name}, {row}: {reason}" for row, (_, reason) in client.differs.items()]
    lines += [f"{client.name}, not {row}: {reason}" for row, reason in client.cannot.items()]
    report("\n".join([*lines, f"kcat lacks all of them: {NO_GROUPS}"]))


def test_every_call_about_groups_is_in_the_table() -> None:
    assert {row.call for row in ROWS} == set(CALLS)
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert sum(isinstance(row.expected, ErrorCode) for row in ROWS) > 10
