"""Defines shards, each one partition's share of a coordinator's state, and operations on them.

A shard holds committed state only. An operation reads it and returns an outcome: the records to
write, the answer, timers. That changes nothing yet; the runtime writes the records, and once they
are safe it replays them into the shard, applies changes that no record holds, and answers.

Pure: no log, no loop, no connection. A waiting client is a ticket, a number that the runtime has
issued; an operation may answer its own ticket later, by the outcome of another one.

Every request makes some of these values. Freezing a class makes its values three times as costly,
so operations and outcomes are not frozen, though no code changes them, and timers are named tuples.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from brokers.cluster.image import ClusterImage
from brokers.protocol.errors import KafkaError
from brokers.protocol.schema import Message

# Identifies a client that waits for an answer.
Ticket: TypeAlias = int
# A change of state that no record holds; only the shard that made it knows its contents.
Soft: TypeAlias = object

# The ticket of operations without a client: timers and chores.
NOBODY: Final[Ticket] = 0


class Claim(Enum):
    """The claim of an operation on its subject while its records are being written."""

    NONE = auto()  # only reads, or changes state that no record holds; never waits
    SHARED = auto()  # makes changes that commute with others of its kind
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
    """The answer to a parked operation."""

    ticket: Ticket
    answer: Answer


class TimerKey(NamedTuple):
    """One timer: its purpose, the subject, and a part of it (a member) or nothing."""

    kind: str
    subject: str
    part: str = ""


class SetTimer(NamedTuple):
    """Sets or resets a timer to fire after a time; if it is set, `only_if_absent` keeps it."""

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
    """Long pure work in small steps, whose result is applied by an operation.

    Only one job per key runs at a time; others with that key are dropped until it ends.
    """

    key: str
    steps: Callable[[], Iterator[None]]
    done: Callable[[], "Operation[S]"]


@dataclass(slots=True, kw_only=True)
class Outcome(Generic[S]):
    """The result of an operation; applied in the order of the fields, as a whole or not at all."""

    records: tuple[Record, ...] = ()
    soft: tuple[Soft, ...] = ()  # applied after the replay of the records
    timers: tuple[Timer, ...] = ()
    # The operation's own answer; None if no client waits for it.
    response: Answer | Parked | None = None
    replies: tuple[Reply, ...] = ()  # sent after the response, in this order
    jobs: tuple[Job[S], ...] = ()
    # For work that does not fit into one batch: runs once the records are safe, in the same turn
    # and with the same claim, before any other operation. It answers in place of this one.
    then: "Operation[S] | None" = None


@dataclass(slots=True, kw_only=True)
class Operation(Generic[S]):
    """One action on one subject (a group) of a shard.

    `run` takes the shard, the time and the operation's own ticket; a KafkaError that it raises is
    the response. If it returns None, its claim is too weak, and `otherwise` runs instead.

    `heard` returns the timer that the request itself postpones. It is used if the disk prevents
    the operation: a member that sends requests while the disk hangs is alive.
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
        """Apply a record that is safe; KafkaError for one that cannot be read."""

    def apply(self, soft: Soft) -> None:
        """Apply a change that no record holds."""

    def loaded(self, now_ms: int) -> Iterable[Outcome[S]]:
        """Yield, in small steps, the timers to set after loading, and nothing else."""

    def timer_fired(self, key: TimerKey) -> Operation[S]:
        """Return the operation for a fired timer; it checks again whether the time is over."""

    def image_changed(
        self, before: ClusterImage, after: ClusterImage, now_ms: int
    ) -> Iterable[Operation[S] | None]:
        """Yield the operations that a change of the cluster requires.

        Works in small steps, each of which yields an operation or None, while the shard is
        changed by earlier ones and by requests.
        """

    def chores(self, now_ms: int) -> Iterable[Operation[S] | None]:
        """Yield the periodic operations, in small steps as well."""

    def unloaded(self) -> Iterable[Reply]:
        """Return the answers for parked clients, which find the new coordinator themselves."""
