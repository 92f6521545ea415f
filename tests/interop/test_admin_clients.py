"""Admin calls of every client, errors included: client × call × expected, and the same from Kafka.

The rows stand in clients/admin_table.py. They run against our broker and against Apache Kafka, so
that what is demanded of ours is what Kafka answers. With PostgreSQL one client makes all calls, and
each makes the second half of them after an outage; in a long run each makes all.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_groups import DeleteGroupsRequest
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.find_coordinator import FindCoordinatorRequest
from brokers.protocol.messages.list_groups import ListGroupsRequest
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from brokers.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.records.batch import Batch, batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import records as read_records
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import ConfigEdit, EditKind, NewTopic, ResourceKind
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
from tests.interop.clients.definitions import DEFINITIONS, Definition
from tests.interop.clients.records import FIRST_TIMESTAMP, Sent
from tests.interop.clients.target import KAFKA, ON_POSTGRES, SAMSA, Kind, Target, calm
from tests.scale import IS_LONG
from tests.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.slow]

T = TypeVar("T")
SETTLE_SECONDS = 5
LOOK_SECONDS = 0.01
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
    makes_all = IS_LONG or target.outage is calm or client is CLIENTS[0]
    door, oracle = client.open(target.bootstrap), ConfluentDoor(target.bootstrap)
    judge = partial(differences, door, oracle, target.bootstrap, client)
    try:
        found = judge(rows[:half]) if makes_all else []
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


def test_definitions_of_topics_and_brokers_have_kafkas_result(target: Target) -> None:
    admin = Admin(Connection(bootstrap=target.bootstrap))

    found = {definition.name: defined(admin, definition) for definition in DEFINITIONS}

    assert found == {
        each.name: (each.refused, {} if each.refused else {**each.configs, **each.shown})
        for each in DEFINITIONS
    }


def test_batches_are_recompressed_as_kafka_recompresses_them(target: Target) -> None:
    oracle, sent = ConfluentDoor(target.bootstrap), [batch_of(codec) for codec in Compression]
    found = {}
    with Wire(target.bootstrap) as wire:
        for name in (*CODECS, "producer"):
            topic = f"packed-{next(NUMBERS)}"
            oracle.create_topic(topic, configs={"compression.type": name})
            settled(partial(is_usable, oracle, topic), True)
            found[name] = [outline(batch) for batch in written(wire, topic, sent)]

    for name, outlines in found.items():
        wanted = [outline(Batch(memoryview(data))) for data in sent]
        for number, each in enumerate(wanted):
            each["codec"] = CODECS.get(name, each["codec"])
            each["first offset"] = 3 * number
        assert outlines == wanted, name


def test_a_group_outlives_its_last_offset_as_in_kafka(target: Target) -> None:
    oracle = ConfluentDoor(target.bootstrap)
    topic, group = f"read-{next(NUMBERS)}", f"lone-{next(NUMBERS)}"
    oracle.create_topic(topic)
    settled(partial(is_usable, oracle, topic), True)
    gone = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    with Wire(target.bootstrap) as wire:
        assert settled(partial(committed, wire, group, topic), 0) == 0
        deleted = wire.ask(gone, 0)
        states = {one.group_id: one.group_state for one in wire.ask(ListGroupsRequest(), 5).groups}
        ends = [
            wire.ask(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code
            for _ in range(2)
        ]

    assert deleted.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert states[group] == "Empty"
    assert ends == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]


def committed(wire: Wire, group: str, topic: str) -> int:
    """Commit an offset as a client without membership; return its error."""
    wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)
    part = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=3, committed_leader_epoch=-1, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    error: int = wire.ask(request, 8).topics[0].partitions[0].error_code
    return error


# The codecs by their names in compression.type.
CODECS = {
    "uncompressed": Compression.NONE,
    **{codec.name.lower(): codec for codec in list(Compression)[1:]},
}


def batch_of(codec: Compression) -> bytes:
    builder = BatchBuilder(
        compression=codec, producer_id=77_000 + codec, producer_epoch=0, base_sequence=0
    )
    builder.append(b"k", b"value" * 500, [(b"h", b"1"), (b"empty", None)], FIRST_TIMESTAMP)
    builder.append(b"k", None, timestamp=FIRST_TIMESTAMP + 5)
    builder.append(b"", b"", timestamp=FIRST_TIMESTAMP - 5)
    return bytes(builder.build())


def written(wire: Wire, topic: str, sent: Iterable[bytes]) -> Iterator[Batch]:
    """Produce batches and yield what is stored of them."""
    for data in sent:
        part = PartitionProduceData(index=0, records=memoryview(data))
        asked = [TopicProduceData(name=topic, partition_data=[part])]
        answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=asked), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    wanted = [FetchTopic(topic=topic, partitions=[place])]
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=2**20, topics=wanted)
    stored = wire.ask(fetch, 11).responses[0].partitions[0].records
    for batch in batches(memoryview(stored)):
        batch.check_crc()
        yield batch


def outline(batch: Batch) -> dict[str, object]:
    """What clients see of a batch; offsets of its records count from the first."""
    return {
        "codec": batch.compression,
        "first offset": batch.base_offset,
        "times": (batch.base_timestamp, batch.max_timestamp, batch.uses_log_append_time),
        "producer": (batch.producer_id, batch.producer_epoch, batch.base_sequence),
        "records": [
            (record.offset - batch.base_offset, record[1:])
            for record in read_records(batch, max_bytes=2**20)
        ],
    }


def defined(admin: Admin, definition: Definition) -> tuple[str, dict[str, str | None]]:
    """Apply a definition and take it back; return its error, and what was shown of it."""
    configs, name = definition.configs, definition.broker
    try:
        if name is None:
            kind, name = ResourceKind.TOPIC, f"defined-{next(NUMBERS)}"
            topic = NewTopic(name=name, partitions=1, replication_factor=1, configs=configs)
            admin.create([topic])
        else:
            kind = ResourceKind.BROKER
            edits = [ConfigEdit(kind=EditKind.SET, key=key, value=configs[key]) for key in configs]
            admin.alter_configs(kind, name, edits)
    except KafkaFailure as failed:
        return failed.name, {}

    def shown() -> dict[str, str | None]:
        with suppress(KafkaFailure):  # Kafka answers before its brokers know
            return {c.key: c.value for c in admin.configs(kind, name) if c.key in configs}
        return {}

    wanted = {**configs, **definition.shown}
    try:
        answer = settled(shown, wanted)
        assert isinstance(answer, dict)
        return "", answer
    finally:
        if kind is ResourceKind.TOPIC:
            admin.delete([name])
        else:
            admin.alter_configs(
                kind, name, [ConfigEdit(kind=EditKind.DELETE, key=key) for key in configs]
            )


def settled(look: Callable[[], T], wanted: T) -> T | Refused:
    """Look again until there is what is wanted: Kafka answers before its brokers know."""
    deadline, pause = time.monotonic() + SETTLE_SECONDS, threading.Event()
    while True:
        found: T | Refused
        try:
            found = look()
        except Refused as refusal:
            found = refusal
        if found == wanted or time.monotonic() > deadline:
            return found
        pause.wait(LOOK_SECONDS)


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
