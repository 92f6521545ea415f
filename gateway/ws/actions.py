"""What a session decides to have done; `connection` does it. Pure values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import NewRecord, Place, Position
from gateway.rest.records.question import END


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Identify:
    """Find out whose token this is."""

    token: str


@dataclass(frozen=True, slots=True)
class Send:
    """Write a record, and tell `settled` how that went."""

    id: str
    topic: str
    record: NewRecord


@dataclass(frozen=True, slots=True)
class Open:
    """Read these partitions, or all of these topics, or what a pattern means, now and later."""

    sid: str
    starts: Mapping[Place, Position]
    topics: Sequence[str] = ()
    start: Position = END
    pattern: TopicPattern | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Read what a group gives of these topics, or of those that a pattern means."""

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
    """Go on elsewhere in some partitions, and where it was in the others."""

    sid: str
    starts: Mapping[Place, Position]


@dataclass(frozen=True, slots=True)
class Drop:
    """Read these no more, of a subscription that goes on."""

    sid: str
    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class Hold:
    """Take nothing of these, or take of them again; of all of them without names."""

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
