"""Dead letters as they are read: whose each is, why it is there, and what is sent in its place.

Pure. `dead_letters` writes what is read here; letters of Kafka Connect's own workers have the same
headers. Anybody who may write to the topic may have made them up, so nothing is taken for granted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from connectors.runtime import retry_topic
from connectors.runtime.dead_letters import PREFIX
from connectors.runtime.retry_topic import Origin
from connectors.runtime.sink_places import has_topic
from connectors.runtime.task_settings import Reading
from gateway.kafka.values import Header, NewRecord, Record, Span

# Of a header that is a name; the message and the stack are cut by whoever shows them.
MAX_NAME_CHARS: Final = 500


class Destination(Enum):
    RETRY = "retry"  # the connector's retry topic, which it alone reads
    ORIGIN = "origin"  # where each record stood first, for all who read there


class Unsent(Enum):
    """Why a chosen letter is left where it is."""

    OTHER = "it is a letter of another connector"
    UNNAMED = "it does not say whose it is: errors.deadletterqueue.context.headers.enable was off"
    NO_ORIGIN = "it does not say which topic it was read from"
    UNREAD = "the name of one of its headers is no UTF-8, so it would arrive without them"
    NOT_READ = "the connector does not read the topic that it was read from"
    GONE = "the partition that it was read from is not there any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What Connect's headers say. An empty text, or None, stands for one that is missing."""

    topic: str = ""
    partition: int | None = None
    offset: int | None = None
    connector: str = ""
    task: int | None = None
    stage: str = ""
    class_name: str = ""
    exception: str = ""
    message: str = ""
    stack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One record of a topic of dead letters."""

    record: Record
    cause: Cause
    # Where it stood first, where it has been sent again before.
    retried: Origin | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.record.partition, self.record.offset

    @property
    def origin(self) -> Origin | None:
        """Where its record stood first; None where it does not say."""
        if self.retried is not None:
            return self.retried
        if not self.cause.topic:
            return None
        cause = self.cause
        return Origin(topic=cause.topic, partition=cause.partition, offset=cause.offset, attempt=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which letters: those of some spans, or the picked ones of them, of a class and a stage."""

    spans: tuple[Span, ...] = ()
    picked: frozenset[tuple[int, int]] = frozenset()
    exception: str = ""
    stage: str = ""

    def has(self, letter: Letter) -> bool:
        return (
            (not self.picked or letter.place in self.picked)
            and (not self.stage or letter.cause.stage.upper() == self.stage.upper())
            and (not self.exception or _is_class(letter.cause.exception, self.exception))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """Whose letters are sent again, and what of them it takes."""

    connector: str
    # None: which topics it reads is known to its tasks only, who look themselves.
    reading: Reading | None
    # Letters that do not say whose they are are its own: nobody else has the topic.
    has_unnamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What is sent in the place of a letter, and where to."""

    topic: str
    record: NewRecord


def letter_of(record: Record) -> Letter:
    told = {name: value or b"" for name, value in record.headers if name.startswith(PREFIX)}

    def text(name: str) -> str:
        return told.get(PREFIX + name, b"").decode("utf-8", "replace")

    def name_of(name: str) -> str:
        return text(name)[:MAX_NAME_CHARS]

    def number(name: str) -> int | None:
        return retry_topic.number(told.get(PREFIX + name))

    cause = Cause(
        topic=name_of("topic"),
        partition=number("partition"),
        offset=number("offset"),
        connector=name_of("connector.name"),
        task=number("task.id"),
        stage=name_of("stage"),
        class_name=name_of("class.name"),
        exception=name_of("exception.class.name"),
        message=text("exception.message"),
        stack=text("exception.stacktrace"),
    )
    # Ours count where the connector that is named read its own retry topic, and nowhere else.
    is_retried = not cause.topic or cause.topic == retry_topic.name_for(cause.connector)
    retried = retry_topic.origin_in(record.headers) if is_retried else None
    return Letter(record=record, cause=cause, retried=retried)


def again(
    letter: Letter,
    to: Addressee,
    destination: Destination,
    *,
    run: str,
    partitions: Mapping[str, int],
) -> Again | Unsent:
    """Return what is sent in the place of a letter, or why nothing is.

    `partitions` are those of all topics that there are.
    """
    if letter.record.has_unread_headers:
        return Unsent.UNREAD
    if letter.cause.connector != to.connector and (letter.cause.connector or not to.has_unnamed):
        return Unsent.OTHER if letter.cause.connector else Unsent.UNNAMED
    origin = letter.origin or _only_topic(to)
    # One that names a retry topic has lost the headers that say where its record stood first.
    if origin is None or retry_topic.is_retry_topic(origin.topic):
        return Unsent.NO_ORIGIN
    if to.reading is not None and not has_topic(to.reading, origin.topic):
        return Unsent.NOT_READ
    if destination is Destination.RETRY:
        return _to_retry_topic(letter, to, origin, run)
    # A partition that is not told is chosen by the key.
    if origin.topic not in partitions or (origin.partition or 0) >= partitions[origin.topic]:
        return Unsent.GONE
    record = _record(letter, partition=origin.partition)
    return Again(topic=origin.topic, record=record)


def _to_retry_topic(letter: Letter, to: Addressee, origin: Origin, run: str) -> Again:
    counted = Origin(
        topic=origin.topic,
        partition=origin.partition,
        offset=origin.offset,
        attempt=origin.attempt + 1,
    )
    partition, offset = letter.place
    ours = (
        *retry_topic.headers_of(counted),
        *retry_topic.sending_headers(run=run, partition=partition, offset=offset),
    )
    return Again(topic=retry_topic.name_for(to.connector), record=_record(letter, *ours))


def _record(letter: Letter, *ours: Header, partition: int | None = None) -> NewRecord:
    raw = letter.record
    own = (pair for pair in retry_topic.without(raw.headers) if not pair[0].startswith(PREFIX))
    return NewRecord(
        value=raw.value,
        key=raw.key,
        headers=(*own, *ours),
        partition=partition,
        timestamp_ms=raw.timestamp_ms,
    )


def _only_topic(to: Addressee) -> Origin | None:
    """Return the topic of a connector that reads just one, by its name."""
    if to.reading is None or to.reading.pattern or len(to.reading.topics) != 1:
        return None
    return Origin(topic=to.reading.topics[0], attempt=0)


def _is_class(name: str, wanted: str) -> bool:
    """Tell whether a class is the wanted one, by its whole name or by the last part of it."""
    return wanted in {name, name.rpartition(".")[2]}
