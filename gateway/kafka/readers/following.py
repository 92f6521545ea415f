"""What a reading takes up as it appears: topics by name or by pattern. Knows no brokers.

Names are matched with a pattern once each, however often somebody looks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.kafka.readers.reading import Reading
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Place, Topic

# What one pattern may mean. A reader has a few hundred partitions, and each look asks for these.
MAX_MATCHED: Final = 1_000


class Readable(Protocol):
    """The names that somebody may read; equal to another where it has the same."""

    def among(self, names: Iterable[str]) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    """Every name."""

    def among(self, names: Iterable[str]) -> Sequence[str]:
        return list(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Which topics are read for as long as they, and more of them, are there."""

    topics: Sequence[str] = ()
    pattern: TopicPattern | None = None
    # The key of its caller, who has so many patterns at most.
    owner: str = ""
    # Of the pattern, at the moment.
    readable: Callable[[], Readable] = All
    # Takes partitions that have appeared; returns how many of them, from the first, may be read.
    reserve: Callable[[Sequence[Place]], int] = len


class Follower:
    """One reading and what it follows."""

    def __init__(self, reading: Reading, follow: Follow) -> None:
        self.reading = reading
        self.follow = follow
        self._listed: frozenset[str] = frozenset()
        self._readable: Readable | None = None
        # What the pattern means, of the names that may be read.
        self._matched: frozenset[str] = frozenset()
        # Topics of which all is taken up: their ids, and how many partitions that were.
        self._complete: dict[str, tuple[str, int]] = {}

    @property
    def has_pattern(self) -> bool:
        return self.follow.pattern is not None

    @property
    def topics(self) -> Sequence[str]:
        """Return the names of all topics that are to be read, as of the last match."""
        return [*self.follow.topics, *sorted(self._matched)[:MAX_MATCHED]]

    def match(self, listed: frozenset[str], readable: Readable) -> None:
        """Take in which topics there are. In any thread, and in one at a time."""
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
            # What is there under this name still has its last word to say.
            wanted |= {place: topic.id for place in lacking if not self.reading.reads(place)}
        return wanted


def without_internal(names: Iterable[str]) -> frozenset[str]:
    """Return what a pattern may mean: Kafka's own topics are read by their names only."""
    return frozenset(name for name in names if not name.startswith("__"))
