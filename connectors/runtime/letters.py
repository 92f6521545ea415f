"""Parses dead letters: the connector of each, its cause, and the record to send again.

Pure. `dead_letters` writes them; letters of Kafka Connect's own workers have the same headers. Any
client with write access to the topic may have forged them, so nothing is trusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final

from connectors.runtime import causes, retry_topic
from connectors.runtime.dead_letters import PREFIX
from connectors.runtime.retry_topic import Origin
from connectors.runtime.sink_places import has_topic
from connectors.runtime.task_settings import Reading
from gateway.kafka.values import Header, NewRecord, Record, Span

# The longest header that is a name; callers cut the message and the stack trace.
MAX_NAME_CHARS: Final = 500
# No message is read further to find its cause; a forged one may have a megabyte.
MAX_READ_CHARS: Final = 2_000
# Of the id of a cause: short enough to type, and no two of a topic are the same.
ID_BYTES: Final = 6


class Destination(Enum):
    RETRY = "retry"  # the connector's retry topic, which only it reads
    ORIGIN = "origin"  # the topic each record was first read from, for all its readers


class Unsent(Enum):
    """Why a chosen letter is not sent. The values are stored."""

    OTHER = "OTHER"
    UNNAMED = "UNNAMED"
    NO_ORIGIN = "NO_ORIGIN"
    UNREAD = "UNREAD"
    NOT_READ = "NOT_READ"
    GONE = "GONE"
    UNPLANNED = "UNPLANNED"

    @property
    def words(self) -> str:
        return UNSENT_WORDS[self]


UNSENT_WORDS: Final[Mapping[Unsent, str]] = {
    Unsent.OTHER: "it belongs to another connector",
    Unsent.UNNAMED: (
        "it names no connector: errors.deadletterqueue.context.headers.enable was off"
    ),
    Unsent.NO_ORIGIN: "it does not name the topic it was read from",
    Unsent.UNREAD: "a header name is not UTF-8, so its headers would be lost",
    Unsent.NOT_READ: "the connector does not read the topic it was read from",
    Unsent.GONE: "its source partition no longer exists",
    Unsent.UNPLANNED: "its topic was in none of the letters that the plan had counted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Connect's headers; an empty text or None if one is missing."""

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
class SharedCause:
    """What failed letters have in common. `text` is their message without the parts of one record.

    Passwords in it are not masked.
    """

    stage: str
    exception: str
    text: str
    # What to do about it; empty if nothing general can be said.
    advice: str = ""

    @property
    def id(self) -> str:
        """Return a short name, by which forms, addresses and commands choose its letters."""
        told = f"{self.stage.upper()}\x00{self.exception}\x00{self.text}"
        return blake2b(told.encode("utf-8", "replace"), digest_size=ID_BYTES).hexdigest()

    @property
    def short_exception(self) -> str:
        return self.exception.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One record of a dead letter topic."""

    record: Record
    cause: Cause
    # Its first place, if it has been sent again before.
    retried: Origin | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.record.partition, self.record.offset

    @property
    def origin(self) -> Origin | None:
        """The first place of its record; None if unknown."""
        if self.retried is not None:
            return self.retried
        if not self.cause.topic:
            return None
        cause = self.cause
        return Origin(topic=cause.topic, partition=cause.partition, offset=cause.offset, attempt=0)

    @property
    def shared_cause(self) -> SharedCause:
        told = self.cause
        said = (told.message[:MAX_READ_CHARS].strip().splitlines() or [""])[0]
        found = causes.of_message(told.stage, said)
        return SharedCause(
            stage=told.stage, exception=told.exception, text=found.text, advice=found.advice
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A selection of letters: by spans, picked offsets, exception class, stage, and cause."""

    spans: tuple[Span, ...] = ()
    picked: frozenset[tuple[int, int]] = frozenset()
    exception: str = ""
    stage: str = ""
    # The id of a cause.
    cause: str = ""

    def has(self, letter: Letter) -> bool:
        return (
            (not self.picked or letter.place in self.picked)
            and (not self.stage or letter.cause.stage.upper() == self.stage.upper())
            and (not self.exception or _is_class(letter.cause.exception, self.exception))
            and (not self.cause or letter.shared_cause.id == self.cause)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """The connector whose letters are sent again, and which of them it accepts."""

    connector: str
    # None: only its tasks know the topics that it reads, and check themselves.
    reading: Reading | None
    # Letters that name no connector belong to it: no other connector uses the topic.
    has_unnamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The record to send for a letter, and its destination."""

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
    # Samsa's headers are trusted only if the named connector read its own retry topic.
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
    """Return the record to send for a letter, or why it is not sent.

    `partitions` are those of all existing topics.
    """
    if letter.record.has_unread_headers:
        return Unsent.UNREAD
    if letter.cause.connector != to.connector and (letter.cause.connector or not to.has_unnamed):
        return Unsent.OTHER if letter.cause.connector else Unsent.UNNAMED
    origin = letter.origin or _only_topic(to)
    # If it names a retry topic, it has lost the headers with its first place.
    if origin is None or retry_topic.is_retry_topic(origin.topic):
        return Unsent.NO_ORIGIN
    if to.reading is not None and not has_topic(to.reading, origin.topic):
        return Unsent.NOT_READ
    if destination is Destination.RETRY:
        return _to_retry_topic(letter, to, origin, run)
    # Without a partition, the key decides.
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
    """Return the topic of a connector that reads exactly one, by name."""
    if to.reading is None or to.reading.pattern or len(to.reading.topics) != 1:
        return None
    return Origin(topic=to.reading.topics[0], attempt=0)


def _is_class(name: str, wanted: str) -> bool:
    """Return whether a class has the wanted name, in full or by its last part."""
    return wanted in {name, name.rpartition(".")[2]}
