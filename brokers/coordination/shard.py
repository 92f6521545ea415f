"""What a shard is: one partition's share of a coordinator's state, and what an operation on it is.

A shard holds committed state only. An operation looks at it and says what should become of it: the
records to write, the answer, timers. Nothing has happened then; the runtime writes the records, and
once they are safe it replays them into the shard, applies what no record holds, and answers.

Pure: no log, no loop, no connection. Who waits for an answer is a ticket, a number that the runtime
has given out; an operation may answer its own later, by the outcome of another one.

Every request makes some of these values. To freeze a class makes its values three times as dear, so
operations and outcomes are not frozen, though nobody changes them, and timers are named tuples.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from brokers.cluster.image import ClusterImage
from brokers.protocol.errors import KafkaError
from brokers.protocol.schema import Message

# Somebody who waits for an answer.
Ticket: TypeAlias = int
# A change of what no record holds; only the shard that made it knows what is in it.
Soft: TypeAlias = object

# Of operations that nobody waits for: timers and chores.
NOBODY: Final[Ticket] = 0


class Claim(Enum):
    """What an operation takes of its subject while its records are on their way."""

    NONE = auto()  # looks, or touches what no record holds; never waits
    SHARED = auto()  # changes what commutes with others of its kind
    EXCLUSIVE = auto()  # changes the subject itself


class Parked(Enum):
    """The answer comes later, by the outcome of another operation."""

    PARKED = auto()


PARKED: Final = Parked.PARKED

Answer: TypeAlias = Message | KafkaError


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the shard's partition; a value of None deletes what the key names.

    `decoded` may be what replay would make of the value, and `decoded_key` of the key, to spare it;
    they say the same.
    """

    key: bytes
    value: bytes | None
    decoded: object = field(default=None, compare=False, repr=False)
    decoded_key: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to somebody who is parked."""

    ticket: Ticket
    answer: Answer


class TimerKey(NamedTuple):
    """One timer: what it is for, the subject, and a part of it (a member) or nothing."""

    kind: str
    subject: str
    part: str = ""


class SetTimer(NamedTuple):
    """Lets the timer fire after a time, counted anew unless `only_if_absent` and it is set."""

    key: TimerKey
    after_ms: int
    only_if_absent: bool = False


class CancelTimer(NamedTuple):
    """Forgets a timer; nothing happens if there is none."""

    key: TimerKey


Timer: TypeAlias = SetTimer | CancelTimer

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[S]):
    """Long pure work in small steps; when it is done, an operation takes up what it found.

    One of a key runs at a time, and another of that key that comes meanwhile is dropped.
    """

    key: str
    steps: Callable[[], Iterator[None]]
    done: Callable[[], "Operation[S]"]


@dataclass(slots=True, kw_only=True)
class Outcome(Generic[S]):
    """What should become of a shard; applied in the order of the fields, all of it or nothing."""

    records: tuple[Record, ...] = ()
    soft: tuple[Soft, ...] = ()  # behind the replay of the records
    timers: tuple[Timer, ...] = ()
    # To whom the operation is answered itself; None where nobody asked.
    response: Answer | Parked | None = None
    replies: tuple[Reply, ...] = ()  # behind the response, in this order
    jobs: tuple[Job[S], ...] = ()
    # For what does not fit into one batch: done next, once the records are safe, in the same turn
    # and with the same claim, so that nobody comes between. It answers in place of this one.
    then: "Operation[S] | None" = None


@dataclass(slots=True, kw_only=True)
class Operation(Generic[S]):
    """Something to do with one subject (a group) of a shard.

    `run` takes the shard, the time and the operation's own ticket; a KafkaError that it raises is
    the response. Where it returns None, its claim is too small, and `otherwise` is done instead.

    `heard` names the timer that whoever asks puts off by asking alone. It counts where the disk
    keeps the operation from being done: a member that speaks while the disk hangs lives.
    """

    name: str
    subject: str
    claim: Claim
    run: "Callable[[S, int, Ticket], Outcome[S] | None]"
    otherwise: "Operation[S] | None" = None
    heard: "Callable[[S], SetTimer | None] | None" = None


class Shard(Protocol[S]):
    """One partition's state. `S` is the shard itself; belongs to one runtime, on its thread."""

    def replay(self, record: Record, timestamp: int) -> None:
        """Takes in a record that is safe; KafkaError for one that cannot be read."""

    def apply(self, soft: Soft) -> None:
        """Takes in a change that no record holds."""

    def loaded(self, now_ms: int) -> Iterable[Outcome[S]]:
        """All records are in: timers to set, and nothing else, in small steps."""

    def timer_fired(self, key: TimerKey) -> Operation[S]:
        """What to do now; it looks again whether the time is over."""

    def image_changed(
        self, before: ClusterImage, after: ClusterImage, now_ms: int
    ) -> Iterable[Operation[S] | None]:
        """What a change of the cluster asks for, which has come now.

        Found out in small steps, each of which yields an operation or None, while the shard is
        changed by those before it and by whoever asks for something.
        """

    def chores(self, now_ms: int) -> Iterable[Operation[S] | None]:
        """What is due from time to time, whoever asks; found out in the same way."""

    def unloaded(self) -> Iterable[Reply]:
        """What to tell those who are parked here: they find the new place themselves."""
