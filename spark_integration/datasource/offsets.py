"""Resolves the partitions and offsets to read, for the driver.

Offsets have the format of Spark's own Kafka source: `{"topic": {"0": 23}}`, sorted.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spark_integration.datasource.errors import DataLost, OptionRefused
from spark_integration.datasource.fetching import Range
from spark_integration.datasource.options import Bound, Choice, Mark, Selection, SourceOptions
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import UNKNOWN_TOPIC, check
from spark_integration.datasource.wire.messages import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TopicFacts,
    TopicPartition,
)

Offsets = dict[TopicPartition, int]
# Samsa's internal topics that brokers treat like any others.
OURS: Final = "__samsa_"
# Small ranges share a task up to this many records, which take as long to read as a task costs.
GROUP_RECORDS: Final = 10_000
PLACES: Final = (EARLIEST, LATEST)


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Format offsets as in a checkpoint."""
    shown: dict[str, dict[str, int]] = {}
    for where in sorted(offsets):
        shown.setdefault(where.topic, {})[str(where.partition)] = offsets[where]
    return shown


def from_json(shown: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, rows in shown.items()
        for partition, offset in rows.items()
    }


def find_topics(cluster: Cluster, selection: Selection) -> dict[str, TopicFacts]:
    """Return the existing topics of a selection."""
    if selection.choice is Choice.PATTERN:
        every = cluster.metadata(None).topics.values()
        return {
            topic.name: topic
            for topic in every
            if not topic.is_internal
            and not topic.name.startswith(OURS)
            and re.search(selection.pattern, topic.name)
        }
    names = selection.topics or tuple({where.topic for where in selection.partitions})

    def ask() -> dict[str, TopicFacts]:
        told = cluster.metadata(names).topics
        for topic in told.values():
            if topic.error_code not in UNKNOWN_TOPIC:
                # Later requests wait for partitions without a leader.
                check(topic.error_code, f"topic {topic.name}")
        return told

    # A topic whose leaders are being elected becomes available shortly.
    told = cluster.retried(ask, "Metadata")
    return {name: topic for name, topic in told.items() if topic.error_code == 0}


def places_of(selection: Selection, topics: Mapping[str, TopicFacts]) -> list[TopicPartition]:
    """Return the partitions to read of the existing topics."""
    every = [
        TopicPartition(name, index) for name, topic in topics.items() for index in topic.leaders
    ]
    if selection.choice is Choice.ASSIGN:
        wanted = frozenset(selection.partitions)
        every = [where for where in every if where in wanted]
    return sorted(every)


def require_all(selection: Selection, places: Iterable[TopicPartition]) -> None:
    """Refuse a selection that names missing topics or partitions."""
    there = set(places)
    missing = [str(where) for where in selection.partitions if where not in there]
    missing += [name for name in selection.topics if name not in {where.topic for where in there}]
    if missing:
        raise OptionRefused(
            f"{selection.choice.value} names {', '.join(sorted(missing))}, which the cluster does"
            " not have: create it, or remove it from the option"
        )


def require_ids(wanted: Mapping[str, bytes], topics: Mapping[str, TopicFacts]) -> None:
    """Refuse to read a topic in place of the one that was meant by its name."""
    for name, topic_id in wanted.items():
        if name in topics and topics[name].topic_id != topic_id:
            raise DataLost(
                f"topic {name} was deleted and recreated after its offsets were looked up: none of"
                " them is an offset of the topic that exists now"
            )


def resolve(
    cluster: Cluster, bound: Bound, places: Sequence[TopicPartition], options: SourceOptions
) -> Offsets:
    """Resolve a bound to the current offset of each partition."""
    if bound.mark is Mark.PLACE:
        return at_place(cluster, places, bound.value, options)
    if bound.mark is Mark.TIME:
        return by_time(cluster, dict.fromkeys(places, bound.value), bound, options)
    require_same(bound, places)
    if bound.mark is Mark.TIMES:
        return by_time(cluster, bound.values, bound, options)
    found = {where: offset for where, offset in bound.values.items() if offset not in PLACES}
    for place in PLACES:
        there = [where for where, offset in bound.values.items() if offset == place]
        found |= at_place(cluster, there, place, options)
    return found


def require_same(bound: Bound, places: Sequence[TopicPartition]) -> None:
    more = set(bound.values) - set(places)
    fewer = set(places) - set(bound.values)
    if more or fewer:
        wrong = f"lacks {min(fewer)}" if fewer else f"names {min(more)}, which is not selected"
        raise OptionRefused(
            f"{bound.option} {wrong}: it has to name each of the {len(places)} partitions that are"
            " read, with -2 for the earliest offset and -1 for the latest"
        )


def at_place(
    cluster: Cluster, places: Iterable[TopicPartition], place: int, options: SourceOptions
) -> Offsets:
    isolation = READ_COMMITTED if options.is_committed else READ_UNCOMMITTED
    return cluster.list_offsets(dict.fromkeys(places, place), isolation=isolation)


def by_time(
    cluster: Cluster, times: Mapping[TopicPartition, int], bound: Bound, options: SourceOptions
) -> Offsets:
    """Find the first record at or after a time; without one, use the end or raise an error."""
    found = cluster.list_offsets(times)
    late = sorted(where for where, offset in found.items() if offset < 0)
    is_start = bound.option.startswith("starting")
    if late and is_start and not options.is_late_allowed:
        raise OptionRefused(
            f"{bound.option}: {late[0]} has no record at or after {times[late[0]]} ms; to begin at"
            " its end, set startingOffsetsByTimestampStrategy to latest"
        )
    return found | at_place(cluster, late, LATEST, options)


def ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    topics: Mapping[str, TopicFacts],
) -> list[Range]:
    """Return the range between two offsets of each partition, without empty ranges."""
    found = []
    for where in sorted(end):
        first, last = start[where], end[where]
        if first > last:
            raise OptionRefused(
                f"{where} would be read from offset {first} to {last}, which is lower: was the"
                " topic recreated? Give offsets that it has now"
            )
        if first < last:
            found.append(
                Range(
                    topic=where.topic,
                    topic_id=topics[where.topic].topic_id,
                    partition=where.partition,
                    start=first,
                    end=last,
                )
            )
    return found


def split(
    wanted: Sequence[Range], *, min_partitions: int | None, max_records: int | None
) -> list[Range]:
    """Split ranges evenly by offsets, if more tasks were requested."""
    total = sum(one.end - one.start for one in wanted)
    parts: list[Range] = []
    for one in wanted:
        size = one.end - one.start
        pieces = 1
        if min_partitions is not None and min_partitions > len(wanted):
            pieces = max(pieces, round(size * min_partitions / total))
        if max_records is not None:
            pieces = max(pieces, -(-size // max_records))
        parts += pieces_of(one, min(pieces, size))
    return parts


def pieces_of(whole: Range, count: int) -> list[Range]:
    size = whole.end - whole.start
    bounds = [whole.start + size * number // count for number in range(count + 1)]
    return [
        Range(
            topic=whole.topic,
            topic_id=whole.topic_id,
            partition=whole.partition,
            start=first,
            end=last,
        )
        for first, last in itertools.pairwise(bounds)
    ]


def grouped(parts: Sequence[Range]) -> list[tuple[Range, ...]]:
    """Group small ranges in order; a large one stays alone."""
    groups: list[tuple[Range, ...]] = []
    group: list[Range] = []
    records = 0
    for part in parts:
        size = part.end - part.start
        if size >= GROUP_RECORDS:
            groups.append((part,))
            continue
        if group and records + size > GROUP_RECORDS:
            groups.append(tuple(group))
            group, records = [], 0
        group.append(part)
        records += size
    return [*groups, tuple(group)] if group else groups
