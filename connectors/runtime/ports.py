"""Defines the inputs of a slice, the calls that it may make, and its result.

`connectors.tasks` implements the ports with a database, tests with a dictionary.
"""

from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

from connectors.runtime.figures import Figures
from connectors.runtime.held_bytes import Budget, Holder
from connectors.sdk.connector import JobConnector, SinkConnector, SourceConnector
from connectors.sdk.records import Place, TopicPartition
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered, NewRecord, NewTopic, Record

# The longest slice, so that a change of the config, or a stop, takes effect within it.
SLICE_S: Final = 30.0
# After this a slice ends if other tasks wait for its worker.
SHARE_S: Final = 1.0

Runnable: TypeAlias = type[SourceConnector] | type[SinkConnector] | type[JobConnector]
Done: TypeAlias = Callable[[Delivered | KafkaFailure], None]


class LeaseLost(Exception):
    """Another worker has the task, or it must stop: nothing may be stored any more."""


class Verdict(Enum):
    """What a slice should do next."""

    KEEP = "keep on"
    YIELD = "others wait for this worker"
    STOP = "end, and store what is done"
    LOST = "end, and store nothing"


class Level(Enum):
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """The inputs of one slice. `config` has secrets in clear, so it is never printed."""

    connector: str
    plugin: Runnable
    number: int = 0
    # The number of tasks that share the work.
    count: int = 1
    epoch: int = 1
    # The connector's config with the task's own over it, as texts; and the plugin's own keys of it,
    # parsed.
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    parsed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    # Consecutive retriable failures before this slice, and consecutive idle slices.
    retries: int = 0
    idle_slices: int = 0
    # Clear values that must not appear in traces and logs.
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Ending(Enum):
    """Why a slice ended."""

    BUSY = "there is more to do"
    IDLE = "there was nothing more to do"
    RETRY = "something failed that may succeed later"
    FAILED = "it has failed, and must be restarted"
    STOPPED = "it was stopped"
    LOST = "the task has another owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceEnd:
    """The result of a slice. `wait_s` is how long the task has nothing to do."""

    ending: Ending
    wait_s: float = 0.0
    retries: int = 0
    idle_slices: int = 0
    trace: str = ""
    # Names of topics read or written, and counts of this slice: `runtime.figures`.
    topics: frozenset[str] = frozenset()
    figures: Mapping[str, int] = field(default_factory=dict)


class Lease(Protocol):
    """The right to run the task; a thread renews it while a slice runs."""

    def renew(self) -> Verdict:
        """Return what to do next; cheap, so a slice calls it between any two steps."""
        ...

    def progress(self) -> None:
        """Note that work has been made durable, which resets the task's crash count."""
        ...


class Offsets(Protocol):
    """The offsets of a source, fenced by the task's epoch."""

    def read(self, place: Place) -> Place | None: ...

    def store(self, offsets: Sequence[tuple[Place, Place]]) -> None:
        """Store the offset of each place; LeaseLost if the task has another owner."""
        ...


class Log(Protocol):
    def write(self, level: Level, text: str) -> None: ...


class Clock(Protocol):
    def monotonic(self) -> float: ...

    def now_ms(self) -> int:
        """Return the time of day, for people."""
        ...

    def wait(self, seconds: float) -> None: ...


class Outlet(Protocol):
    """Sends to any topic."""

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        """Send a record; `done` is called within `send` or `flush`, or not at all."""
        ...

    def flush(self) -> None:
        """Wait until all records are acknowledged or have failed; KafkaFailure on timeout."""
        ...


class Inlet(Protocol):
    """Reads assigned partitions, and commits to a group without being its member."""

    def begin(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    def seek(self, place: TopicPartition, offset: int) -> None: ...

    def take(self, *, most: int, wait_s: float) -> list[Record]: ...

    def ended(self) -> Collection[TopicPartition]:
        """Return the partitions that were read to their end at some time."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    def close(self) -> None: ...


class Wire(Protocol):
    """The cluster."""

    def bootstrap(self) -> str:
        """Return the bootstrap servers, for foreign clients."""
        ...

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic."""
        ...

    def topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        """Return the ids of those topics that exist; a recreated topic has a new id."""
        ...

    def creates_topics(self) -> bool:
        """Return whether brokers create topics that a client sends to."""
        ...

    def create(self, topic: NewTopic) -> bool:
        """Create a topic; False if it exists already."""
        ...

    def outlet(self, overrides: Mapping[str, str]) -> Outlet: ...

    def inlet(self, group: str, overrides: Mapping[str, str]) -> Inlet: ...

    def committed(self, group: str) -> Mapping[TopicPartition, int]: ...

    def bounds(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return first offset and end of those partitions that have a leader."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Everything a slice may use. `kept` holds the plugin's objects between slices, `memory` ours.

    The creator of `figures` may read them while the slice runs.
    """

    lease: Lease
    offsets: Offsets
    log: Log
    clock: Clock
    wire: Wire
    figures: Figures = field(default_factory=Figures)
    kept: MutableMapping[str, Any] = field(default_factory=dict)
    memory: MutableMapping[str, Any] = field(default_factory=dict)
    # Returns why the author of the config may not create a topic; an empty text if they may.
    creation_refusal: Callable[[str], str] = lambda _topic: ""
    # The task's part of the memory budget of its process.
    held: Holder = field(default_factory=lambda: Holder(Budget()))
