"""Offsets as a checkpoint has them, and ranges that are divided."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration.datasource.errors import DataLost, OptionRefused
from spark_integration.datasource.fetching import Range
from spark_integration.datasource.offsets import (
    GROUP_RECORDS,
    find_topics,
    from_json,
    grouped,
    ranges,
    require_ids,
    split,
    to_json,
)
from spark_integration.datasource.options import Choice, Selection
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import BrokerError
from spark_integration.datasource.wire.messages import Metadata, TopicFacts, TopicPartition
from spark_integration.datasource.wire.settings import parse_settings

TOPICS = {
    "t": TopicFacts(
        name="t", error_code=0, topic_id=bytes(16), is_internal=False, leaders={0: 1, 1: 1}
    )
}


class Electing(Cluster):
    """A cluster with one topic, which has no leader yet at the first request."""

    def __init__(self, *codes: int) -> None:
        settings = parse_settings({"bootstrap.servers": "a:1"})
        super().__init__(settings, pause=lambda _seconds: None)
        self._codes = list(codes)

    def metadata(self, topics: Iterable[str] | None) -> Metadata:
        told = replace(TOPICS["t"], error_code=self._codes.pop(0))
        return Metadata(brokers={}, topics={"t": told})


def test_a_topic_without_leaders_is_waited_for_and_a_forbidden_one_is_not() -> None:
    selection = Selection(choice=Choice.SUBSCRIBE, topics=("t",))

    found = find_topics(Electing(5, 5, 0), selection)
    missing = find_topics(Electing(3), selection)

    assert (list(found), missing) == (["t"], {})
    with pytest.raises(BrokerError, match="topic t: TOPIC_AUTHORIZATION_FAILED"):
        find_topics(Electing(29), selection)


def whole(start: int, end: int, partition: int = 0) -> Range:
    return Range(topic="t", topic_id=bytes(16), partition=partition, start=start, end=end)


def test_offsets_are_written_as_sparks_own_source_writes_them() -> None:
    offsets = {TopicPartition("u", 0): 1, TopicPartition("t", 10): 7, TopicPartition("t", 9): 5}

    shown = to_json(offsets)

    assert list(shown) == ["t", "u"]
    assert list(shown["t"].items()) == [("9", 5), ("10", 7)]
    assert from_json(shown) == offsets


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(OptionRefused, match="t-0 would be read from offset 9 to 3"):
        ranges({TopicPartition("t", 0): 9}, {TopicPartition("t", 0): 3}, TOPICS)


def test_empty_ranges_make_no_tasks() -> None:
    start = {TopicPartition("t", 0): 3, TopicPartition("t", 1): 3}
    end = {TopicPartition("t", 0): 3, TopicPartition("t", 1): 5}

    assert ranges(start, end, TOPICS) == [whole(3, 5, partition=1)]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 500)), min_size=1, max_size=5),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 100),
)
def test_divided_ranges_cover_the_same_offsets(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    wanted = [
        whole(start, start + size, partition) for partition, (start, size) in enumerate(sizes)
    ]

    parts = split(wanted, min_partitions=min_partitions, max_records=max_records)

    covered = [(part.partition, at) for part in parts for at in range(part.start, part.end)]
    assert covered == [(one.partition, at) for one in wanted for at in range(one.start, one.end)]
    assert all(part.start < part.end for part in parts)
    if max_records is not None:
        assert max(part.end - part.start for part in parts) <= max_records


@given(st.lists(st.integers(1, 2 * GROUP_RECORDS), max_size=30))
def test_small_ranges_share_a_task_and_none_is_left_out(sizes: list[int]) -> None:
    parts = [whole(5, 5 + size, partition) for partition, size in enumerate(sizes)]

    groups = grouped(parts)

    assert sorted((part for group in groups for part in group), key=parts.index) == parts
    for group in groups:
        assert len(group) == 1 or sum(part.end - part.start for part in group) <= GROUP_RECORDS


def test_ten_thousand_partitions_with_a_few_records_are_few_tasks() -> None:
    parts = [whole(0, 3, partition) for partition in range(10_000)]

    assert len(grouped(parts)) == 4


def test_a_topic_is_not_read_in_place_of_the_one_that_was_meant() -> None:
    require_ids({"t": bytes(16), "gone": bytes(16)}, TOPICS)

    with pytest.raises(DataLost, match="topic t was deleted and recreated after its offsets"):
        require_ids({"t": b"x" * 16}, TOPICS)
