"""Advises before a topic is created, extended or deleted.

Suggests partition counts to begin with and to grow to, and lists the groups that a change affects
now. Pure, except for the groups that read a topic, which come from the collector.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from brokers.cluster.decisions import MAX_PARTITIONS_PER_TOPIC
from brokers.cluster.implications import moved_share
from console import quantities
from console.monitoring.tables import GroupRow
from console.queries.topic import Found, details_of
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation

# A consumer reads and processes this much easily; most do more than parse.
BYTES_PER_PARTITION: Final = 10 * 1024 * 1024
# So that three consumers can share the work of a topic of unknown load.
LEAST_PARTITIONS: Final = 3
# Groups that a sentence names.
NAMED_GROUPS: Final = 5
NAME_CHARS: Final = 60
# The multiples of the present count that the table of growths shows.
MULTIPLES: Final = (2, 3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    partitions: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A number of partitions to grow to, and the share of the keys that moves."""

    count: int
    moved: str
    is_even: bool  # each serving broker gets the same number


def suggestion(*, brokers: int, bytes_per_s: float | None) -> Suggestion:
    """Return how many partitions to begin with, and why."""
    brokers = max(1, brokers)
    needed = LEAST_PARTITIONS
    why = f"{LEAST_PARTITIONS} consumers of a group can share them"
    if bytes_per_s is not None:
        needed = max(1, math.ceil(bytes_per_s / BYTES_PER_PARTITION))
        why = (
            f"{quantities.bytes_rate(bytes_per_s)} need {needed} at"
            f" {quantities.bytes_rate(BYTES_PER_PARTITION)} each, which one consumer keeps up with"
        )
    even = -(-needed // brokers) * brokers
    if even > MAX_PARTITIONS_PER_TOPIC:
        return Suggestion(
            partitions=MAX_PARTITIONS_PER_TOPIC,
            reason=f"{why}; {MAX_PARTITIONS_PER_TOPIC} is the most that a topic can have",
        )
    if brokers == 1:
        return Suggestion(partitions=even, reason=f"{why}; one broker leads all of them")
    each = even // brokers
    return Suggestion(
        partitions=even,
        reason=f"{why}; a multiple of {brokers} brokers gives each {each} to lead",
    )


def growths(count: int, *, brokers: int) -> tuple[Growth, ...]:
    """Return partition counts to grow to: the next ones, and those that move fewer keys."""
    even = (count // max(1, brokers) + 1) * max(1, brokers)
    wanted = {count + 1, even, *(count * each for each in MULTIPLES)}
    return tuple(
        Growth(
            count=each,
            moved=f"{moved_share(count, each):.0%}",
            is_even=each % max(1, brokers) == 0,
        )
        for each in sorted(wanted)
        if each <= MAX_PARTITIONS_PER_TOPIC
    )


def met_by_growth(found: Found, rights: Rights) -> tuple[str, ...]:
    """Return which groups are affected when a topic gets more partitions."""
    return tuple(
        _met(
            found,
            rights,
            reading="learn of new partitions within their metadata.max.age.ms (5 minutes by "
            "default), and then divide all partitions again",
            writing="Producers send a key that moves to its new partition as soon as they know of"
            " it, while consumers may still be busy with its older records.",
        )
    )


def met_by_deletion(found: Found, rights: Rights) -> tuple[str, ...]:
    """Return which groups lose a topic that is deleted."""
    return tuple(
        _met(
            found,
            rights,
            reading="lose what they have not read yet, and fail to commit offsets of it",
            writing="Producers fail, or create the topic again.",
        )
    )


def met_by_configs(found: Found, rights: Rights) -> tuple[str, ...]:
    """Return which groups use a topic whose configs change."""
    return tuple(
        _met(
            found,
            rights,
            reading="lose records that they have not read yet where retention gets shorter",
            writing="The new configs apply to their next batches.",
        )
    )


def _met(found: Found, rights: Rights, *, reading: str, writing: str) -> Iterator[str]:
    if found.live.is_away:
        yield "Its producers and consumers are unknown: the collector does not respond."
        return
    if found.live.is_stale:
        yield f"All of this is from {found.live.age_s} s ago, when the collector last responded."
    yield _writers(found, writing)
    details = details_of(found, first=0, rows=0)
    if details.untold:
        yield f"The groups that read it are unknown. {details.untold}"
        return
    yield from _readers(found, rights, details.groups, reading)


def _writers(found: Found, writing: str) -> str:
    told = found.live.snapshot.topic(found.topic.name)
    if told is None or told.records_per_s is None:
        return "Its producers are not known yet."
    if not told.records_per_s:
        return "No producer has written to it in the last ten seconds."
    return (
        f"Producers write {quantities.short(told.records_per_s)} records/s"
        f" ({quantities.bytes_rate(told.bytes_in_per_s)}) to it. {writing}"
    )


def _readers(found: Found, rights: Rights, groups: Sequence[str], reading: str) -> Iterator[str]:
    if not groups:
        yield "No group reads it."
        return
    names = rights.names(Operation.VIEW, cluster=found.cluster_id, kind=Kind.GROUP)
    seen = names.among(groups)
    rows = [row for name in seen if (row := found.live.snapshot.group(name)) is not None]
    active = [row for row in rows if row.members]
    if active:
        yield f"Groups with members {reading}: {_named(active)}."
    if idle := [row for row in rows if not row.members]:
        yield f"Groups without members that have committed offsets of it: {_named(idle)}."
    if hidden := len(groups) - len(seen):
        yield f"{hidden} more group{'s' if hidden > 1 else ''} that you may not see."


def _named(rows: list[GroupRow]) -> str:
    rows = sorted(rows, key=lambda row: (-row.members, row.name))
    named = ", ".join(
        f"{row.name[:NAME_CHARS]} ({row.members} member{'s' if row.members > 1 else ''})"
        if row.members
        else row.name[:NAME_CHARS]
        for row in rows[:NAMED_GROUPS]
    )
    more = len(rows) - NAMED_GROUPS
    return f"{named} and {more} more" if more > 0 else named
