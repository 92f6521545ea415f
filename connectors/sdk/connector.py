"""Base classes: a connector splits its work into tasks, and a task reads or writes.

A task runs in slices of seconds: `start` and `stop` may be called thousands of times, in one or
several processes. `context.kept` keeps expensive resources between slices.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeAlias

from connectors.sdk.configs import Definition, Value
from connectors.sdk.errors import ConnectorError, DataError
from connectors.sdk.records import (
    JobBatch,
    Place,
    RawRecord,
    SinkRecord,
    SourceRecord,
    TopicPartition,
)

# A config as written: texts by key. Parsed: values by key.
Config: TypeAlias = Mapping[str, str]
Parsed: TypeAlias = Mapping[str, Any]


class Connector(ABC):
    """The description of a connector, and the factory of its tasks."""

    # Its name in configs, such as "samsa.postgres.source".
    name: ClassVar[str]
    # Java's class names that select it, in configs written for Kafka Connect.
    aliases: ClassVar[tuple[str, ...]] = ()
    # A title and a sentence for the catalogue.
    title: ClassVar[str]
    summary: ClassVar[str]
    version: ClassVar[str] = "1.0"
    # The packages that it needs in addition to Samsa's own, such as ("psycopg>=3.2",), and the name
    # of the extra that provides them.
    extra: ClassVar[str] = ""
    modules: ClassVar[tuple[str, ...]] = ()
    # Keys of its Java originals that it does not support, each with the reason: a config with one
    # is refused.
    refused: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # The pool of workers that runs its tasks.
    pool: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def definition(cls) -> Definition:
        """Return its own keys; the framework adds those of every connector."""

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        """Return errors beyond single keys; may connect to the external system, within 5 s.

        A sink gets its `topics` too, if the config names them.
        """
        del parsed
        return ()

    @abstractmethod
    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        """Return the keys of each task, besides the connector's config; at most `max_tasks`."""


class Context(Protocol):
    """The services of the framework for a task."""

    @property
    def connector(self) -> str: ...

    @property
    def task(self) -> int: ...

    @property
    def epoch(self) -> int:
        """Return the fencing epoch, a number that rises when the task moves to another owner.

        It also rises across the tasks of a connector, since partitions move between these, and
        continues to rise when a connector is deleted and recreated under its name.
        """

    @property
    def retries(self) -> int:
        """Return the number of consecutive retries before this slice."""

    @property
    def kept(self) -> MutableMapping[str, Any]:
        """Return the objects that this process keeps between slices of this task.

        They are closed by `close()` and removed when the task moves or fails, when its connector
        changes, and when the process ends.
        """

    @property
    def should_yield(self) -> bool:
        """Return whether the slice is over, so that a long call should return what it has."""

    def hold(self, size: int) -> int:
        """Report how many bytes the task holds in `kept`; return how many to release now.

        All tasks of a process share its memory. Call it in each `put`, and in each `flush`, so that
        a task without new records releases memory as well.
        """

    def reached(self) -> None:
        """Note that the other side has answered, as after a login.

        A task that has never reached it fails after some minutes of RetriableErrors; later ones are
        retried without an end. A batch that was put, and stored offsets, say the same.
        """

    def log(self, text: str) -> None:
        """Write a line to the log of the task, which pages show."""

    def warn(self, text: str) -> None:
        """Write a line of level WARN to the log of the task."""


class SourceContext(Context, Protocol):
    def offset(self, partition: Place) -> Place | None:
        """Return the stored offset of a place in the source; None if there is none."""


class SinkContext(Context, Protocol):
    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Make the next batch of a partition begin at an offset."""

    def refuse(self, record: SinkRecord, error: ConnectorError) -> None:
        """Reject a record of the current `put`, which goes on with the others.

        It goes to the dead letters, or an error that fails the task is raised, as configured. To a
        sink that raises RecordError instead, the batch is put again without the record.
        """

    def settle(self) -> None:
        """Wait until all rejected records are in the dead letter topic.

        A sink that keeps its offsets in the target calls it before it makes them durable.
        """

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic when the slice began; empty if unknown.

        A recreated topic has a new id, and offsets kept in the target do not belong to it.
        """


class SourceTask(ABC):
    """Reads a share of a source. `poll` returns soon, with an empty list if nothing is new."""

    @abstractmethod
    def start(self, context: SourceContext, parsed: Parsed) -> None: ...

    @abstractmethod
    def poll(self) -> list[SourceRecord]:
        """Return the next records: at most some thousands, within about a second."""

    def reached(self) -> tuple[Place, Place] | None:
        """Return a source partition and an offset there without a record.

        Called after everything polled is in the cluster, so that a source that skips much of its
        input still makes progress. None if there is nothing to store.
        """
        return None

    def commit(self, records: Sequence[SourceRecord]) -> None:
        """Handle records that the cluster has, after their offsets are stored.

        The last result of `reached` is stored too; if there is only that, there are no records.
        """

    def stop(self) -> None:
        """End the slice; there are no further polls."""


class SinkTask(ABC):
    """Writes a share of the partitions."""

    @abstractmethod
    def start(self, context: SinkContext, parsed: Parsed) -> None: ...

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offsets to begin at, for partitions whose offsets the target stores.

        For others, the framework begins at the offsets of the consumer group.
        """
        del partitions
        return {}

    @abstractmethod
    def put(self, records: list[SinkRecord]) -> None:
        """Take a batch; the order within a partition is that of the topic."""

    def flush(self) -> Mapping[TopicPartition, int] | None:
        """Make all put records durable, and return the offsets up to which they are (exclusive).

        None means all put records. Only returned offsets are committed to the group.
        """
        return None

    def stop(self) -> None:
        """End the slice; records that were not flushed will be put again."""


class SourceConnector(Connector):
    @abstractmethod
    def task(self) -> SourceTask: ...

    def alter_offsets(self, parsed: Parsed, offsets: Mapping[str, Place | None]) -> None:
        """Raise ConfigError for offsets that this source cannot begin at."""
        del parsed, offsets


class SinkConnector(Connector):
    # Whether the target stores offsets together with the records.
    is_exactly_once: ClassVar[bool] = False
    # Whether `open` returns stored offsets of the target, which take precedence over the group's.
    keeps_offsets: ClassVar[bool] = False

    @abstractmethod
    def task(self) -> SinkTask: ...


class JobContext(Context, Protocol):
    """The context of a job, which reads topics by its own engine, not record by record."""

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap servers, for the engine's own clients."""

    @property
    def group(self) -> str:
        """Return the group that publishes the job's offsets."""

    @property
    def begins_at_end(self) -> bool:
        """Return whether the job reads new partitions from their end."""

    def places(self) -> Sequence[TopicPartition]:
        """Return the partitions to read, including those without a leader."""

    def bounds(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return the current first offset and end of each partition to read."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of existing topics.

        A topic that was deleted and recreated has another id, and its own offsets.
        """

    def note(self) -> Mapping[str, Any] | None:
        """Return the last note of `keep_note` by any worker; None if there is none."""

    def keep_note(self, note: Mapping[str, Any]) -> None:
        """Store a JSON value durably, for jobs without a checkpoint of their own."""

    def committed(self) -> Mapping[TopicPartition, int]:
        """Return the offsets of the group, which a user may have altered."""

    def require_lease(self) -> None:
        """Raise an error if the task has another owner, and so must not make anything durable."""

    @property
    def is_stopping(self) -> bool:
        """Return whether a stop of the task or its worker was requested; thread-safe.

        If a call continues for some more seconds, its process is killed.
        """

    def refuse(self, record: RawRecord, error: DataError) -> None:
        """Reject a record: it goes to the dead letters or fails the task, as configured."""

    def count(self, *, read: int = 0, written: int = 0, skipped: int = 0, dead: int = 0) -> None:
        """Add to the counts that pages show."""

    def note_batch(self, batch: JobBatch) -> None:
        """Store the statistics of a finished batch, for pages; only the newest is kept."""

    def settle(self) -> None:
        """Wait until all rejected records are in the dead letter topic."""

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit the job's offsets to its group, after they are durable.

        Only for lag monitoring: the job begins at its own checkpoint. Return whether the commit
        succeeded; if not, the next one makes up for it.
        """


class JobTask(ABC):
    """Has another engine, such as Spark, read topics and write the results."""

    @abstractmethod
    def start(self, context: JobContext, parsed: Parsed) -> None: ...

    @abstractmethod
    def run(self) -> bool:
        """Work for some seconds; return whether there was work.

        Called until the slice is over; must return soon once `should_yield` is true.
        """

    def stop(self) -> None:
        """End the slice; work that is not durable is repeated."""


class JobConnector(Connector):
    """A connector whose tasks are jobs. It names its topics like a sink."""

    @abstractmethod
    def task(self) -> JobTask: ...


# Objects in `context.kept` have a `close` method if they need to be closed.
Close: TypeAlias = Callable[[], None]
