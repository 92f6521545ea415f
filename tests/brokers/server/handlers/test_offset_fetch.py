"""OffsetFetch: who is told what a group with members has committed."""

from dataclasses import replace

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from brokers.server.handlers import offset_fetch
from tests.builders import clusters, shards
from tests.builders import mixed_groups as mixed
from tests.builders.mixed_groups import GROUP, cluster, desk_of
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import GroupHandlers

MODERN, CLASSIC = "modern", "classic"
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),  # an administrator
        (None, 1, UNKNOWN),
        ("", -1, UNKNOWN),
        ("nobody", -1, UNKNOWN),
        ("nobody", 1, UNKNOWN),
        (MODERN, 0, ErrorCode.NONE),
        (MODERN, -1, ErrorCode.STALE_MEMBER_EPOCH),
        (MODERN, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (CLASSIC, 0, ErrorCode.NONE),
        (CLASSIC, -1, ErrorCode.ILLEGAL_GENERATION),
        (CLASSIC, 1, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_members_are_known_by_their_id_and_epoch(
    member_id: str | None, epoch: int, code: ErrorCode
) -> None:
    """`epoch` counts from the member's own, but for -1 and for who is no member."""
    desk = desk_of(cluster(orders=2))
    mixed.enter(desk, MODERN)
    mixed.join(desk, CLASSIC)
    if member_id in {MODERN, CLASSIC} and epoch >= 0:
        epoch += mixed.member_of(desk, member_id).epoch
    group = OffsetFetchRequestGroup(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None
    )

    answer = GroupHandlers(desk).ask(offset_fetch, OffsetFetchRequest(groups=[group]), 9)

    assert answer.groups[0].error_code == code


def test_the_offsets_of_a_group_outlive_its_changes_of_protocol() -> None:
    desk = desk_of(cluster(orders=2))
    member_id = mixed.settle(desk, {"a": {"orders": [0, 1]}})["a"]
    assert mixed.commit(desk, member_id, 1, ("orders", 0), offset=5) is ErrorCode.NONE

    def told() -> dict[int, int]:
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        answer = GroupHandlers(desk).ask(offset_fetch, OffsetFetchRequest(groups=[group]), 9)
        topics = answer.groups[0].topics
        return {p.partition_index: p.committed_offset for t in topics for p in t.partitions}

    assert told() == {0: 5}
    mixed.enter(desk, MODERN)
    assert told() == {0: 5}
    mixed.beat(desk, MODERN, -1)
    assert told() == {0: 5}


@pytest.mark.parametrize("version", [2, 9])
def test_an_offset_on_a_former_topic_of_the_same_name_is_not_told(version: int) -> None:
    desk = shards.desk(orders=1, other=1)
    again = replace(clusters.topic("other"), id=clusters.topic_id("another"))
    desk.image = clusters.with_topics(clusters.without(desk.image, "other"), again)
    shards.committed(desk, GROUP, "orders", topic_id=clusters.topic_id("of another cluster"))
    shards.committed(desk, GROUP, "other", topic_id=clusters.topic_id("other"))
    shards.committed(desk, GROUP, "unknown", topic_id=clusters.topic_id("unknown"))

    told = told_of(desk, version, None)
    by_name = told_of(desk, version, ["orders", "other"])

    assert told == {"orders": 7, "unknown": 7}
    assert by_name == {"orders": 7, "other": -1}


def told_of(desk: GroupDesk, version: int, names: list[str] | None) -> dict[str, int]:
    """The offset of partition 0 of each topic."""
    if version < 8:
        old = (
            None
            if names is None
            else [OffsetFetchRequestTopic(name=n, partition_indexes=[0]) for n in names]
        )
        answer = GroupHandlers(desk).ask(
            offset_fetch, OffsetFetchRequest(group_id=GROUP, topics=old), version
        )
        topics = answer.topics
    else:
        new = (
            None
            if names is None
            else [OffsetFetchRequestTopics(name=n, partition_indexes=[0]) for n in names]
        )
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=new)
        answer = GroupHandlers(desk).ask(offset_fetch, OffsetFetchRequest(groups=[group]), version)
        topics = answer.groups[0].topics
    return {topic.name: part.committed_offset for topic in topics for part in topic.partitions}
