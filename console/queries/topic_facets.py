"""Combines the database's and the brokers' data of one topic, and computes its facets.

Pure. Either part may be missing, and then sets no facet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.controlplane.selectors import TopicSummary
from console.monitoring.tables import TopicRow
from console.monitoring.verdicts import ALARMS, SEVERITY, Verdict
from console.queries.lag import MARKS

# A topic's row of the mirror's table.
Row = Sequence[Any]
# Worse than any verdict in the order by health.
LEADERLESS: Final = 2 * len(SEVERITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    stored: TopicSummary | None  # None: the database does not answer, or does not have it yet
    told: TopicRow | None  # None: no broker reports it
    row: Row | None  # the row that `told` was made of
    cleanup_policy: str  # of topics that do not set their own
    kinds: int = 0  # the matching facets, one bit each

    def is_of(self, stored: TopicSummary | None, row: Row | None, cleanup_policy: str) -> bool:
        """Tell whether the topic was made of these objects."""
        same = self.stored is stored and self.row is row
        return same and self.cleanup_policy == cleanup_policy

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict of the worst group; None if no group reads the topic."""
        if self.told is None or self.told.lag is None:
            return None
        return Verdict(self.told.verdict)

    @property
    def is_leaderless(self) -> bool:
        return self.stored is not None and self.stored.leaderless > 0

    @property
    def is_lagging(self) -> bool:
        return self.verdict in ALARMS

    @property
    def is_fine(self) -> bool:
        """Tell whether the topic is known to be healthy, which takes data from brokers."""
        return self.told is not None and not self.is_leaderless and not self.is_lagging

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing was written or read over the last ten seconds."""
        told = self.told
        return told is not None and told.records_per_s == 0 and not told.bytes_out_per_s

    @property
    def is_compacted(self) -> bool:
        configs = {} if self.stored is None else self.stored.configs
        return "compact" in configs.get("cleanup.policy", self.cleanup_policy)

    @property
    def is_overridden(self) -> bool:
        return self.stored is not None and bool(self.stored.configs)

    @property
    def badness(self) -> int:
        """Return a sort key: partitions without a leader first, then by verdict."""
        verdict = self.verdict
        worse = 0 if verdict is None else SEVERITY[verdict]
        return worse + (LEADERLESS if self.is_leaderless else 0)

    @property
    def health(self) -> tuple[str, str]:
        """Return the CSS class of the mark, and the word."""
        if self.stored is not None and self.stored.leaderless:
            return "bad", f"{self.stored.leaderless} without leader"
        verdict = self.verdict
        if verdict is not None and verdict in ALARMS:
            return MARKS[verdict].state, MARKS[verdict].word
        if self.stored is None:
            return "stale", "Not known"
        # Without the brokers' data, the lag of groups is unknown.
        return "ok", "Has leaders" if self.told is None else "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A filter on topics. At most one facet of a family can be chosen."""

    key: str
    word: str
    meaning: str
    holds: Callable[[Topic], bool]
    family: str = ""


FACETS: Final[Mapping[str, Facet]] = MappingProxyType(
    {
        facet.key: facet
        for facet in (
            Facet(
                key="leaderless",
                word="Without leader",
                meaning="A partition has no leader: it cannot be read or written.",
                holds=lambda topic: topic.is_leaderless,
                family="health",
            ),
            Facet(
                key="lagging",
                word="Lagging",
                meaning="A group that has read it needs attention: its verdict says why.",
                holds=lambda topic: topic.is_lagging,
                family="health",
            ),
            Facet(
                key="ok",
                word="OK",
                meaning="Every partition has a leader, and every group keeps up.",
                holds=lambda topic: topic.is_fine,
                family="health",
            ),
            Facet(
                key="idle",
                word="Idle",
                meaning="Nothing was written or read in the last ten seconds.",
                holds=lambda topic: topic.is_idle,
            ),
            Facet(
                key="compacted",
                word="Compacted",
                meaning="The last record of each key is kept.",
                holds=lambda topic: topic.is_compacted,
            ),
            Facet(
                key="overridden",
                word="Configs set",
                meaning="Some config is set for the topic itself.",
                holds=lambda topic: topic.is_overridden,
            ),
            # Hidden unless it is chosen.
            Facet(
                key="internal",
                word="Internal",
                meaning="Brokers keep their own data in it, such as committed offsets.",
                holds=lambda topic: topic.is_internal,
            ),
        )
    }
)
INTERNAL: Final = "internal"
BITS: Final = {key: 1 << place for place, key in enumerate(FACETS)}


def topic_of(name: str, stored: TopicSummary | None, row: Row | None, cleanup_policy: str) -> Topic:
    """Combine both parts of a topic and compute its facets."""
    topic = Topic(
        name=name,
        stored=stored,
        told=None if row is None else TopicRow(*row),
        row=row,
        cleanup_policy=cleanup_policy,
    )
    held = sum(BITS[facet.key] for facet in FACETS.values() if facet.holds(topic))
    return replace(topic, kinds=held)


def fits(kinds: int, wanted: int) -> bool:
    """Tell whether all wanted facets match; internal topics are hidden unless wanted."""
    is_hidden = kinds & ~wanted & BITS[INTERNAL]
    return kinds & wanted == wanted and not is_hidden
