"""Defines the actions that a session decides and `connection` executes. Pure values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import END, NewRecord, Place, Position


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Identify:
    """Authenticate a token."""

    token: str


@dataclass(frozen=True, slots=True)
class Send:
    """Write a record, and report the result to `settled`."""

    id: str
    topic: str
    record: NewRecord


@dataclass(frozen=True, slots=True)
class Open:
    """Read partitions, or all partitions of topics or of a pattern, including new ones."""

    sid: str
    starts: Mapping[Place, Position]
    topics: Sequence[str] = ()
    start: Position = END
    pattern: TopicPattern | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Read partitions that a group assigns, of these topics or of those of a pattern."""

    sid: str
    group: str
    topics: Sequence[str]
    is_from_earliest: bool
    pattern: TopicPattern | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    sid: str
    offsets: Mapping[Place, int]


@dataclass(frozen=True, slots=True)
class Move:
    """Seek in some partitions; the others continue."""

    sid: str
    starts: Mapping[Place, Position]


@dataclass(frozen=True, slots=True)
class Drop:
    """Stop reading some partitions of a subscription that continues."""

    sid: str
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class Hold:
    """Pause or resume these partitions; None means all."""

    sid: str
    places: Sequence[Place] | None
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Feed:
    """More may be taken for a subscription."""

    sid: str


@dataclass(frozen=True, slots=True)
class LetGo:
    sid: str


@dataclass(frozen=True, slots=True)
class Close:
    code: int
    reason: str


Action = Say | Identify | Send | Open | Join | Commit | Move | Drop | Hold | Feed | LetGo | Close
