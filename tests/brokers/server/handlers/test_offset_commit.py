"""OffsetCommit: each partition stands for itself, and a text is as long as Java says."""

import pytest

from brokers.coordination.groups.settings import MAX_ID_BYTES
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from brokers.server.handlers import offset_commit
from tests.brokers.coordination.groups.test_shard import GROUP, desk
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import GroupHandlers

__all__ = ["desk"]
LONGEST = 4_096


def ask(
    handlers: GroupHandlers, *texts: str, group_id: str = GROUP, member_id: str = ""
) -> list[ErrorCode]:
    """Commits one partition for each text."""
    parts = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7, committed_metadata=text
        )
        for index, text in enumerate(texts)
    ]
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=parts)],
    )
    answer = handlers.ask(offset_commit, request, 9)
    return [part.error_code for topic in answer.topics for part in topic.partitions]


@pytest.mark.parametrize("character", ["a", "ä", "語", "😀"])
def test_a_text_that_is_too_long_is_refused_and_its_neighbour_kept(
    desk: GroupDesk, character: str
) -> None:
    units = len(character.encode("utf-16-le")) // 2
    fits = character * (LONGEST // units)

    found = ask(GroupHandlers(desk), fits, fits + "a")

    assert found == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    committed = desk.shard.offsets.of(GROUP)
    assert {place: each.metadata for place, each in committed.items()} == {("orders", 0): fits}


@pytest.mark.parametrize("character", ["g", "ä", "語"])
def test_ids_are_counted_in_bytes(desk: GroupDesk, character: str) -> None:
    size = len(character.encode())
    fits = character * (MAX_ID_BYTES // size)
    longer = fits + character

    assert ask(GroupHandlers(desk), "", group_id=fits) == [ErrorCode.NONE]
    assert ask(GroupHandlers(desk), "", group_id=longer) == [ErrorCode.INVALID_GROUP_ID]
    assert ask(GroupHandlers(desk), "", member_id=longer) == [ErrorCode.INVALID_REQUEST]


def test_a_partition_that_no_topic_has_is_unknown(desk: GroupDesk) -> None:
    texts = [""] * (len(desk.image.topics["orders"].partitions) + 1)

    found = ask(GroupHandlers(desk), *texts)

    assert found[-1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(found[:-1]) == {ErrorCode.NONE}
