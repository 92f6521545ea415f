"""Admin calls of every client, errors included: client × call × expected, and the same from Kafka.

The rows stand in clients/admin_table.py. They run against our broker and against Apache Kafka, so
that what is demanded of ours is what Kafka answers. With PostgreSQL there are two runs, one with an
outage after half of the rows.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.records.compression import Compression
from tests.extras import requires
from tests.interop.clients.admin import CALLS, Refused
from tests.interop.clients.admin_confluent import ConfluentDoor
from tests.interop.clients.admin_table import (
    CLIENTS,
    LATEST,
    RECORDS,
    ROWS,
    TOPIC_CONFIG,
    Client,
    Row,
)
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.records import FIRST_TIMESTAMP, Sent
from tests.interop.clients.target import KAFKA, ON_POSTGRES, SAMSA, Kind, Target

pytestmark = [pytest.mark.interop, pytest.mark.slow]

T = TypeVar("T")
SETTLE_SECONDS = 5
NUMBERS = itertools.count()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(kind, id=kind.name, marks=kind.marks) for kind in (SAMSA, *ON_POSTGRES, KAFKA)
    ],
)
def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    kind: Kind = request.param
    with kind.start(tmp_path_factory.mktemp("admin"), 1) as running:
        yield running


@pytest.mark.parametrize(
    "client", [pytest.param(each, id=each.name, marks=requires(*each.needs)) for each in CLIENTS]
)
def test_every_admin_call_is_answered_as_kafka_answers_it(target: Target, client: Client) -> None:
    rows = [row for row in ROWS if row.call not in client.lacks]
    half = len(rows) // 2
    door, oracle = client.open(target.bootstrap), ConfluentDoor(target.bootstrap)
    judge = partial(differences, door, oracle, target.bootstrap, client)
    try:
        found = judge(rows[:half])
        with target.outage() as end:
            end()
            # Nobody waits for the agent: the first calls find it on its way.
            found += judge(rows[half:])
    finally:
        door.close()

    assert found == []


def differences(
    door: object, oracle: ConfluentDoor, bootstrap: str, client: Client, rows: Iterable[Row]
) -> list[str]:
    found = []
    for row in rows:
        expected, _ = client.differs.get(row.name, (row.expected, ""))
        answer = outcome(door, oracle, bootstrap, row)
        if answer != (expected, row.left):
            found.append(f"{row.name}: {answer} != {(expected, row.left)}")
    return found


def outcome(door: object, oracle: ConfluentDoor, bootstrap: str, row: Row) -> tuple[object, object]:
    """Set a row's stage, make its call, and look at what is left."""
    topic = row.topic or f"topic-{next(NUMBERS)}"
    if row.has_topic or row.has_records:
        oracle.create_topic(topic, configs=TOPIC_CONFIG)
        settled(partial(is_usable, oracle, topic), True)
    if row.has_records:
        write_records(bootstrap, topic)
    arguments = {"topic": topic, **row.arguments} if row.takes_topic else row.arguments
    answer: object
    try:
        answer = getattr(door, row.call)(**arguments)
    except Refused as refusal:
        answer = refusal.code
    left = settled(partial(row.look, oracle, topic), row.left) if row.look else None
    if row.topic is None:
        with suppress(Refused):
            oracle.delete_topic(topic)
    return answer, left


def settled(look: Callable[[], T], wanted: T) -> T | Refused:
    """Look again until there is what is wanted: Kafka answers before its brokers know."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        found: T | Refused
        try:
            found = look()
        except Refused as refusal:
            found = refusal
        if found == wanted or time.monotonic() > deadline:
            return found


def is_usable(door: ConfluentDoor, topic: str) -> bool:
    """Tell whether the leaders of all partitions know it, too."""
    return all(
        leader >= 0 and door.list_offset(topic, partition, LATEST) == 0
        for partition, leader, *_ in door.describe_topic(topic)
    )


def write_records(bootstrap: str, topic: str) -> None:
    records = [
        Sent(partition=0, timestamp=FIRST_TIMESTAMP + n, key=None, value=b"%d" % n, headers=())
        for n in range(RECORDS)
    ]
    ConfluentClient().write(bootstrap, topic, records, Compression.NONE, idempotent=True)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_has_each_call_or_a_reason_why_not(
    client: Client, report: Callable[[str], None]
) -> None:
    has = {call for call in CALLS if hasattr(client.open, call)}

    assert has | client.lacks.keys() == set(CALLS)
    assert not has & client.lacks.keys()
    assert client.differs.keys() <= {row.name for row in ROWS}
    lines = [f"{client.name} lacks {call}: {reason}" for call, reason in client.lacks.items()]
    lines += [f"{client.name}, {row}: {reason}" for row, (_, reason) in client.differs.items()]
    report("\n".join(lines))


def test_every_call_is_in_the_table_and_every_error_is_one_of_kafkas() -> None:
    assert {row.call for row in ROWS} == set(CALLS)
    assert sum(isinstance(row.expected, ErrorCode) for row in ROWS) > 15
