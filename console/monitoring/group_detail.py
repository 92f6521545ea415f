"""Builds the collector's detail of one group: its topics, some of its partitions, its members.

Pure. Most partitions of most groups are at their end, so only suspicious ones are judged, and a
page of a large group gets a hundred of its rows, the worst first.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.monitoring.deltas import Row
from console.monitoring.groups import Group, Pair
from console.monitoring.observed import Observed
from console.monitoring.rings import PartitionRing
from console.monitoring.verdicts import (
    CAUGHT_UP,
    KEEPS_UP,
    SEVERITY,
    VACANT,
    Evidence,
    Owned,
    Rule,
    Verdict,
    judge,
    judge_owned,
)

# Partitions and members of one detail; the page says if there are more.
MAX_DETAIL: Final = 10_000
# Partitions without an owner that are named; their number is sent too.
MAX_UNOWNED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The selected partitions: of one topic or of all, the first row, and how many."""

    topic: str = ""
    first: int = 0
    rows: int = MAX_DETAIL


EVERYTHING: Final = Part()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A partition to be sorted into a page."""

    pair: Pair
    partition: int
    rule: Rule[Evidence] | Rule[Owned]
    lag: int | None

    @property
    def rank(self) -> tuple[int, int]:
        return (-SEVERITY[self.rule.verdict], -(self.lag or 0))


def group_detail(
    group: Group, observed: Observed, ring: PartitionRing, part: Part = EVERYTHING
) -> dict[str, Any]:
    owners = {
        (topic, partition): member
        for member, row in group.members.items()
        for topic, partitions in row[5]
        for partition in partitions
    }
    places = [place for pair in _pairs(group, part) for place in _places(group, pair)]
    # Partitions of equal rank stay in the order of topic and number: `sort` is stable.
    places.sort(key=lambda place: place.rank)
    shown = places[part.first : part.first + min(part.rows, MAX_DETAIL)]
    unowned = list(_unowned(group, observed, owners))
    members = [
        [*row[1:6], _lag_of(group, row[5])] for row in list(group.members.values())[:MAX_DETAIL]
    ]
    return {
        "coordinator": group.owner,
        "topics": [_topic_row(pair, observed) for pair in _pairs(group, EVERYTHING)],
        "partitions": [_partition_row(place, observed, ring, owners) for place in shown],
        "partition_count": len(places),
        "members": members,
        "unowned": unowned[:MAX_UNOWNED],
        "unowned_count": len(unowned),
        "is_cut": max(len(places), len(group.members)) > MAX_DETAIL,
    }


def _pairs(group: Group, part: Part) -> list[Pair]:
    pairs = [group.pairs[topic] for topic in sorted(group.pairs)]
    return [pair for pair in pairs if not part.topic or pair.topic == part.topic][:MAX_DETAIL]


def _places(group: Group, pair: Pair) -> Iterator[_Place]:
    """Judge the partitions of a pair: those with a commit, then those that are only owned.

    As of the last look, since the verdict of the pair is of that moment.
    """
    history, reader, now_ms = pair.history, group.reader, pair.looked_ms
    is_lost = pair.verdict is Verdict.LOSS_AHEAD
    suspects = set(history.suspects(now_ms) if reader.is_there else history.lagging())
    for partition in sorted(history.partitions()):
        lag = history.lag(partition)
        rule: Rule[Evidence] | Rule[Owned] = KEEPS_UP if lag else CAUGHT_UP
        if not reader.is_there:
            rule = VACANT
        # The verdict of the whole pair is that of its worst partition.
        is_loss = is_lost and partition == pair.worst_partition
        if is_loss or partition in suspects:
            evidence = history.evidence(partition, reader=reader, is_loss_ahead=is_loss)
            rule = judge(evidence, now_ms)
        yield _Place(pair=pair, partition=partition, rule=rule, lag=lag)
    owned = None if pair.owned is None else judge_owned(pair.owned, now_ms)
    for partition in pair.uncommitted:
        yield _Place(pair=pair, partition=partition, rule=owned or CAUGHT_UP, lag=None)


def _partition_row(
    place: _Place,
    observed: Observed,
    ring: PartitionRing,
    owners: Mapping[tuple[str, int], str],
) -> Row:
    pair, partition = place.pair, place.partition
    topic = observed.topics.get(pair.topic)
    slot = None if topic is None else topic.slots.get(partition)
    is_committed = partition in pair.history
    committed, commit_ms = pair.history.committed(partition) if is_committed else (None, None)
    start, end = (0, None) if slot is None else (observed.starts[slot], observed.ends[slot])
    # The present lag, like the offsets beside it; the sort order is of the last look.
    lag = None if end is None or committed is None else max(0, end - max(start, committed))
    rates = [] if slot is None else ring.rates(slot)
    return (
        *(pair.topic, partition, committed, end, lag, commit_ms),
        *(place.rule.verdict.value, owners.get((pair.topic, partition))),
        *(rates[-1] if rates else None, place.rule.key, 0 if end is None else end - start),
    )


def _topic_row(pair: Pair, observed: Observed) -> Row:
    """Return what the table of pairs leaves out: rates over minutes, and the worst partition."""
    topic = observed.topics.get(pair.topic)
    rates = (None, None) if pair.longer is None else (pair.longer.consumed, pair.longer.produced)
    return (
        *(pair.topic, None if topic is None else len(topic.slots), *rates),
        *(pair.worst_partition, pair.since_ms, pair.rule),
    )


def _unowned(
    group: Group, observed: Observed, owners: Mapping[tuple[str, int], str]
) -> Iterator[tuple[str, int]]:
    """Return the partitions of the topics that a group reads which no member owns."""
    if not group.members:
        return
    for name in sorted(group.pairs.keys() | {topic for topic, _partition in owners}):
        topic = observed.topics.get(name)
        for partition in sorted(() if topic is None else topic.slots):
            if (name, partition) not in owners:
                yield name, partition


def _lag_of(group: Group, owned: Iterable[tuple[str, Iterable[int]]]) -> int:
    """Return how many records wait in the partitions of a member, as far as known."""
    lag = 0
    for topic, partitions in owned:
        pair = group.pairs.get(topic)
        if pair is not None:
            known = (partition for partition in partitions if partition in pair.history)
            lag += sum(pair.history.lag(partition) or 0 for partition in known)
    return lag
