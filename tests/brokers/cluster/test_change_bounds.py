"""How large one change may be: split where it can be, refused where it cannot, never unreadable."""

from dataclasses import fields

import pytest

from brokers.cluster import change_bounds, link
from brokers.cluster.apply import apply
from brokers.cluster.changes import (
    Change,
    ConfigsChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.image import ClusterImage, PartitionState, Position, ResourceType
from brokers.cluster.updates import Assembly
from brokers.protocol.errors import ErrorCode, KafkaError

TOPIC_ID = bytes(range(16))
LARGE = 2**31 - 1


def state(replicas: int = 1) -> PartitionState:
    """Return a state whose numbers take as many bytes as numbers can."""
    members = (LARGE,) * replicas
    return PartitionState(
        replicas=members, isr=members, leader=LARGE, leader_epoch=LARGE, partition_epoch=LARGE
    )


def created(partitions: int, replicas: int = 1) -> TopicCreated:
    return TopicCreated("orders", TOPIC_ID, (state(replicas),) * partitions)


def image_after(records: tuple[Record, ...]) -> ClusterImage:
    before = ClusterImage(cluster_id="c")
    return apply(before, Change(position=Position(version=1, id=bytes(16)), records=records))


def test_a_small_change_is_left_as_it_is() -> None:
    records = (created(3), TopicRemoved("other", TOPIC_ID))
    assert change_bounds.bounded(records) == records


@pytest.mark.parametrize("replicas", [1, 60])
def test_a_large_topic_is_split_and_leads_to_the_same_image(replicas: int) -> None:
    record = created(5_000, replicas)

    parts = change_bounds.bounded([record])

    assert len(parts) >= 3
    assert image_after(parts) == image_after((record,))
    assert all(
        len(link.encode_change(Change(position=Position(), records=(part,)))) < link.MAX_FRAME
        for part in parts
    )


def test_partitions_that_are_added_are_split_where_they_begin() -> None:
    added = PartitionsAdded(TOPIC_ID, 7, (state(),) * 4_100)

    parts = list(change_bounds.split([added]))

    assert [part.first_index for part in parts if isinstance(part, PartitionsAdded)] == [
        7,
        2_007,
        4_007,
    ]


def test_a_split_change_is_read_as_it_was_written() -> None:
    change = Change(
        position=Position(version=1, id=TOPIC_ID), records=change_bounds.bounded([created(5_000)])
    )
    reader, assembly = link.FrameReader(link.decode_from_agent), Assembly()

    updates = [
        update
        for frame in reader.feed(link.encode_change(change))
        if isinstance(frame, link.ChangeFrame)
        for update in assembly.take(frame)
    ]

    assert [update for update in updates if update is not None] == [change]


@pytest.mark.parametrize(
    "record",
    [
        created(2_000),
        created(100, replicas=200),
        ConfigsChanged(ResourceType.TOPIC, "t" * 249, (("key", "€" * 1_000), ("k", ""))),
        TopicRemoved("€" * 249, TOPIC_ID),
    ],
)
def test_a_record_never_weighs_more_than_was_estimated(record: Record) -> None:
    alone = link.encode_change(Change(position=Position(), records=(record,)))
    assert len(alone) <= change_bounds.weight(record)


def test_the_estimate_of_a_state_knows_all_of_its_lists() -> None:
    lists = {field.name for field in fields(PartitionState) if "tuple" in str(field.type)}
    assert lists == {"replicas", "isr"}


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([ConfigsChanged(ResourceType.TOPIC, "t", (("key", "v" * 200_000),))], "one record"),
        ([TopicRemoved("t", TOPIC_ID)] * (change_bounds.MAX_RECORDS + 1), "10001 records in one"),
        ([created(2_000, replicas=40)] * 21, "bytes in one change"),
    ],
)
def test_too_large_change_is_refused_with_both_sizes(records: list[Record], words: str) -> None:
    with pytest.raises(KafkaError, match=words) as refusal:
        change_bounds.bounded(records)
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION
