"""The tables of the snapshot that readers mirror: one frozen value per row, its fields in order.

Collector and readers are of one release, and `FORMAT` says so: a reader refuses another number
rather than misread a row.
"""

from dataclasses import dataclass
from typing import Final

from console.monitoring.verdicts import Verdict

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. What an older release does not tell is None."""

    id: int
    address: str
    answered_ms: int  # 0 where it never has
    failure: str  # why the last question failed; empty where it did not
    bytes_in_per_s: float
    bytes_out_per_s: float
    requests_per_s: float
    connections: int
    partitions: int
    log_bytes: int | None
    memory_bytes: int | None
    disk_size_bytes: int | None
    disk_free_bytes: int | None
    loop_delay_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class TopicRow:
    name: str
    partitions: int
    size_bytes: int
    # Over the last ten seconds, None before there are two samples.
    records_per_s: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    lag: int | None  # of the group that is worst; None where no group reads it
    verdict: str
    worst_group: str


@dataclass(frozen=True, slots=True)
class LagRow:
    """How far something is behind: the end of a group's row and of a pair's."""

    lag: int
    unknown: int  # partitions of which nobody tells where they end
    verdict: str
    oldest_ms: int  # when the oldest record that waits was written; 0 where it is not known
    eta_low_s: float | None  # None: it does not catch up
    eta_high_s: float | None  # None beside a low end: by its longer rate it never does

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
    rebalances: int
    topics: int


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
    """Return the key of a pair: no topic's name holds a NUL, whatever a group's does."""
    return f"{group}\0{topic}"
