"""Defines the rows of the mirrored tables: one frozen value per row, its fields in order.

Collector and readers must be of one release, which `FORMAT` identifies: a reader refuses any other
number rather than misread a row.
"""

from dataclasses import dataclass
from typing import Final

from console.monitoring.verdicts import Verdict

FORMAT: Final = 3


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. A value that an older release does not report is None."""

    id: int
    address: str
    answered_ms: int  # 0 if it never did
    failure: str  # why the last request failed; empty if it did not
    bytes_in_per_s: float
    bytes_out_per_s: float
    requests_per_s: float
    connections: int
    partitions: int
    log_bytes: int | None
    memory_bytes: int | None
    disk_size_bytes: int | None
    disk_used_bytes: int | None
    disk_free_bytes: int | None
    disk_device: int | None  # the kernel's number of it, on the broker's host
    loop_delay_p99_ms: float | None
    folders_aside: int | None  # of other topics, set aside in the log dir


@dataclass(frozen=True, slots=True)
class TopicRow:
    name: str
    partitions: int
    size_bytes: int
    # Over the last ten seconds; None before there are two samples.
    records_per_s: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    lag: int | None  # of the worst group; None if no group reads it
    verdict: str
    worst_group: str


@dataclass(frozen=True, slots=True)
class LagRow:
    """A lag: the last fields of a group's row and of a pair's."""

    lag: int
    unknown: int  # partitions whose end is unknown
    verdict: str
    oldest_ms: int  # the timestamp of the oldest unread record; 0 if unknown
    eta_low_s: float | None  # None: it does not catch up
    eta_high_s: float | None  # None beside a low end: at its longer-term rate, it never does
    rule: str  # the key of the rule that gave the verdict
    since_ms: int  # since when the verdict is true, or since when it was seen to be
    # Partitions that members own without a commit, and the records in them.
    uncommitted: int
    at_most: int

    @property
    def verdict_value(self) -> Verdict:
        return Verdict(self.verdict)


@dataclass(frozen=True, slots=True)
class GroupRow(LagRow):
    name: str
    type: str
    state: str
    epoch: int
    members: int
    rebalances: int  # that are known: those of its coordinator, and those of the ones after it
    topics: int
    owned: int  # partitions of its members
    recent_rebalances: int  # of the last minutes
    counted_since_ms: int  # since when its rebalances are counted over moves of its coordinator


@dataclass(frozen=True, slots=True)
class PairRow(LagRow):
    group: str
    topic: str
    partitions: int


ROW_TYPES: Final = {
    "brokers": BrokerRow,
    "topics": TopicRow,
    "groups": GroupRow,
    "pairs": PairRow,
}


def pair_key(group: str, topic: str) -> str:
    """Return the key of a pair: a topic name holds no NUL, though a group name may."""
    return f"{group}\0{topic}"
