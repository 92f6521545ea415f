"""One topic as the database and the brokers have it, and the facets that hold for it.

Pure. Either part may be missing, and then says nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.controlplane.selectors import TopicSummary
from console.monitoring.tables import TopicRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries.lag import MARKS

# A topic of the mirror's table, as it came.
Row = Sequence[Any]
LAGGING: Final = frozenset(v for v, mark in MARKS.items() if mark.state in {"warn", "bad"})
# Of the order by health: worse than any verdict.
LEADERLESS: Final = 2 * len(SEVERITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    stored: TopicSummary | None  # None: the database does not answer, or does not know it yet
    told: TopicRow | None  # None: no broker tells of it
    row: Row | None  # what `told` was made of
    cleanup_policy: str  # of topics that set none
    kinds: int = 0  # the facets that hold, a bit each

    def is_of(self, stored: TopicSummary | None, row: Row | None, cleanup_policy: str) -> bool:
        """Tell whether it was made of just these."""
        same = self.stored is stored and self.row is row
        return same and self.cleanup_policy == cleanup_policy

    @property
    def verdict(self) -> Verdict | None:
        """Return how the group that is worst keeps up; None where no group reads the topic."""
        if self.told is None or self.told.lag is None:
            return None
        return Verdict(self.told.verdict)

    @property
    def is_leaderless(self) -> bool:
        return self.stored is not None and self.stored.leaderless > 0

    @property
    def is_lagging(self) -> bool:
        return self.verdict in LAGGING

    @property
    def is_fine(self) -> bool:
        """Tell whether it is known that nothing is wrong: brokers tell how groups keep up."""
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
        """Return a number to sort by: partitions without leader first, then the verdict."""
        verdict = self.verdict
        worse = 0 if verdict is None else SEVERITY[verdict]
        return worse + (LEADERLESS if self.is_leaderless else 0)

    @property
    def health(self) -> tuple[str, str]:
        """Return the mark and the word."""
        if self.stored is not None and self.stored.leaderless:
            return "bad", f"{self.stored.leaderless} without leader"
        verdict = self.verdict
        if verdict is not None and verdict in LAGGING:
            return MARKS[verdict].state, MARKS[verdict].word
        if self.stored is None:
            return "stale", "Not known"
        # Without the brokers nobody knows how groups keep up.
        return "ok", "Led" if self.told is None else "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A part of all topics that can be asked for. Of one family, one facet is chosen at most."""

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
                meaning="A partition has no leader: nobody can read or write it.",
                holds=lambda topic: topic.is_leaderless,
                family="health",
            ),
            Facet(
                key="lagging",
                word="Lagging",
                meaning="A group that reads it is slow, rewound, stalled, stopped, or about to lose"
                " records.",
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
            # Not among the others unless it is asked for.
            Facet(
                key="internal",
                word="Internal",
                meaning="Kept by brokers for themselves, as committed offsets are.",
                holds=lambda topic: topic.is_internal,
            ),
        )
    }
)
INTERNAL: Final = "internal"
BITS: Final = {key: 1 << place for place, key in enumerate(FACETS)}


def topic_of(name: str, stored: TopicSummary | None, row: Row | None, cleanup_policy: str) -> Topic:
    """Put both parts of a topic together, with the facets that hold."""
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
    """Tell whether all that is wanted holds; internal topics are hidden unless they are wanted."""
    is_hidden = kinds & ~wanted & BITS[INTERNAL]
    return kinds & wanted == wanted and not is_hidden
