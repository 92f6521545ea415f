"""Selects new partitions for a reading, of topics by name or by pattern. Knows no brokers.

A name is matched with a pattern once, however often topics are listed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.kafka.readers.admission import Admission, Readable
from gateway.kafka.readers.reading import Reading
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Place, Topic

# Topics that a pattern may match: a reader has a few hundred partitions; a round asks for all.
MAX_MATCHED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Topics to read while they exist, including partitions and topics that appear later."""

    topics: Sequence[str] = ()
    # Matches readable topics only.
    pattern: TopicPattern | None = None
    # Reserves new partitions; returns how many of them, from the first, may be read.
    reserve: Callable[[Sequence[Place]], int] = len


class Follower:
    """One reading and the topics that it follows."""

    def __init__(self, reading: Reading, follow: Follow, admission: Admission) -> None:
        self.reading = reading
        self.follow = follow
        self.admission = admission
        self._listed: frozenset[str] = frozenset()
        self._readable: Readable | None = None
        # The readable names that the pattern matches.
        self._matched: frozenset[str] = frozenset()
        # Topics whose partitions are all taken up: their ids, and the number of partitions.
        self._complete: dict[str, tuple[str, int]] = {}

    @property
    def has_pattern(self) -> bool:
        return self.follow.pattern is not None

    @property
    def topics(self) -> Sequence[str]:
        """Return the names of all topics to read, as of the last match."""
        return [*self.follow.topics, *sorted(self._matched)[:MAX_MATCHED]]

    def match(self, listed: frozenset[str], readable: Readable) -> None:
        """Update the matched topics from a list. Any thread, but one at a time."""
        assert self.follow.pattern is not None, "nothing else is matched"
        if readable == self._readable:
            new, kept = listed - self._listed, self._matched & listed
        else:
            new, kept = listed, frozenset()
        self._matched = kept | frozenset(self.follow.pattern.among(readable.among(new)))
        self._listed, self._readable = listed, readable

    def wanted(self, found: Mapping[str, Topic]) -> dict[Place, str]:
        """Return partitions that are not read yet, with the ids of their topics."""
        self.reading.forget_topics(found.keys())
        wanted: dict[Place, str] = {}
        for name in self.topics:
            topic = found.get(name)
            if topic is None:
                self._complete.pop(name, None)
                continue
            if self._complete.get(name) == (topic.id, len(topic.partitions)):
                continue
            lacking = [
                place
                for place in (
                    Place(topic=name, partition=partition.index) for partition in topic.partitions
                )
                if self.reading.lacks(place, topic.id)
            ]
            if not lacking:
                self._complete[name] = topic.id, len(topic.partitions)
            # The previous partition of this name still has its final news to deliver.
            wanted |= {place: topic.id for place in lacking if not self.reading.reads(place)}
        return wanted


def without_internal(names: Iterable[str]) -> frozenset[str]:
    """Return the names that a pattern may match: internal topics must be named."""
    return frozenset(name for name in names if not name.startswith("__"))
