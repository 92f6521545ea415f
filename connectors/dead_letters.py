"""Reads the newest dead letters of a connector, and counts them by cause.

Keys and values are records, so the caller needs the right to read the topic. The results are
bounded: the beginning of each letter, for as many as one look reads.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from connectors import framework_keys as keys
from connectors import models, selectors
from connectors.changes import By
from connectors.references import has_reference
from connectors.refusals import Refused, Unfit
from connectors.runtime import letters, redrive
from connectors.runtime.cluster_wire import ClusterWire
from connectors.runtime.dead_letters import PREFIX
from connectors.runtime.letter_causes import CauseTally
from connectors.runtime.letters import (
    Addressee,
    Choice,
    Destination,
    Letter,
    SharedCause,
    Unsent,
)
from connectors.runtime.masking import masked
from connectors.runtime.task_settings import reading_of, value
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import TopicPartition
from connectors.vault import CannotOpen, Opened
from connectors.vault import masked as without_passwords
from gateway.access.record_reader import RecordReader
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.readers.admission import admit
from gateway.kafka.values import Record, Span

# Letters of one look, backwards from the end of a topic: few if they fill the table, more if a
# filter excludes most of them.
WINDOWS: Final = (100, 400, 1_500)
# Rows of a table; the next look continues after the last one.
MAX_SHOWN: Final = 50
# A page has to answer within five seconds, even without brokers.
LOOK_S: Final = 3.0
# Letters that are counted by cause, backwards from the end of a topic: as many as fit into the time
# beside a look.
COUNT_WINDOWS: Final = (1_000, 4_000, 15_000, 30_000)
COUNT_S: Final = 1.5
MAX_PREVIEW_BYTES: Final = 2_000
MAX_HEADERS: Final = 50
CONTEXT: Final = "errors.deadletterqueue.context.headers.enable"


class Cluster(redrive.Wire, Protocol):
    """The cluster, with its groups."""

    def readers(self, topics: Sequence[str]) -> Mapping[str, "Reader"]: ...


class Reader(Protocol):
    """A group: its committed offsets and the number of its members."""

    @property
    def committed(self) -> Mapping[TopicPartition, int]: ...

    @property
    def members(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A dead letter topic, and what the config says about it."""

    topic: str
    to: Addressee


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The beginning of a key or a value; `size` is None for null."""

    text: str
    size: int | None

    @property
    def is_cut(self) -> bool:
        return (self.size or 0) > MAX_PREVIEW_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One letter for display, with secrets masked."""

    partition: int
    offset: int
    timestamp_ms: int | None
    topic: str
    topic_partition: int | None
    topic_offset: int | None
    connector: str
    task: int | None
    stage: str
    class_name: str
    exception: str
    message: str
    stack: str
    cause: SharedCause
    # How often it was sent again before.
    attempts: int
    key: Preview
    value: Preview
    headers: tuple[tuple[str, str], ...]
    # Why it cannot be sent again; None where it can.
    unsent: Unsent | None

    @property
    def id(self) -> str:
        return f"{self.partition}/{self.offset}"

    @property
    def short_exception(self) -> str:
        return self.exception.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseShown:
    """A cause for display, with secrets masked, and the letters that have it."""

    id: str
    stage: str
    exception: str
    text: str
    advice: str
    letters: int
    # Times of the records.
    first_ms: int | None
    last_ms: int | None
    # The newest letter: partition/offset, and its message.
    example: str
    message: str

    @property
    def short_exception(self) -> str:
        return self.exception.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """The causes of the newest letters, the most common first."""

    topic: str
    is_there: bool = True
    rows: tuple[CauseShown, ...] = ()
    counted: int = 0
    total: int = 0
    # Letters of rarer causes that are not listed.
    others: int = 0
    # Every letter of the topic was counted.
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The newest letters before some offsets, newest first, and how far the look went."""

    topic: str
    is_there: bool = True
    rows: tuple[Shown, ...] = ()
    looked: int = 0
    total: int = 0
    # The offsets before which older letters are; empty if the look has reached the beginning.
    older: Mapping[int, int] = field(default_factory=dict)


def cluster_at(connection: Connection) -> Cluster:
    return ClusterWire(lambda: connection)


def place_of(row: models.Connector) -> Place:
    """Return the dead letter topic of a connector. Raises Unfit if it has none."""
    config = without_passwords(row.config)
    topic = config.get(keys.DEAD_LETTERS, "").strip()
    if row.kind != "sink" or not topic:
        raise Unfit(
            f"{row.name} has no dead letter topic: only sinks do, if their config names one in"
            f" {keys.DEAD_LETTERS}"
        )
    if has_reference(topic):
        raise Unfit(
            f"{row.name} names its dead letter topic by a reference, which only its tasks"
            " resolve: write the name itself into the config"
        )
    return Place(topic=topic, to=_addressee(row, config, topic))


def _addressee(row: models.Connector, config: Mapping[str, str], topic: str) -> Addressee:
    read = {key: config[key] for key in (keys.TOPICS, keys.TOPICS_REGEX) if key in config}
    is_known = not any(has_reference(text) for text in read.values())
    others = models.Connector.objects.filter(cluster=row.cluster, kind="sink").exclude(pk=row.pk)
    is_shared = any(
        _may_be(other.get(keys.DEAD_LETTERS), topic)
        for other in others.values_list("config", flat=True)
    )
    try:
        has_context = bool(value(config, CONTEXT))
    except ConfigError:
        # A reference: letters without a cause may date from when it had another value.
        has_context = True
    return Addressee(
        connector=row.name,
        reading=reading_of(read) if is_known else None,
        has_unnamed=not has_context and not is_shared,
    )


def _may_be(text: object, topic: str) -> bool:
    """Return whether a config value may name a topic; a reference may name any."""
    return isinstance(text, str) and (text.strip() == topic or has_reference(text))


def require_read(by: By, cluster: str, topic: str) -> None:
    """Raise Refused unless the caller may read a topic."""
    admit(RecordReader(caller=by.caller, cluster_id=cluster, error=Refused), [topic])


def look(
    by: By,
    cluster: str,
    name: str,
    *,
    wire: Cluster,
    exception: str = "",
    stage: str = "",
    cause: str = "",
    before: Mapping[int, int] | None = None,
) -> Look:
    """Return letters of a connector, newest first. Raises NotFound, Unfit, Refused."""
    row = selectors.row_of(cluster, name)
    place = place_of(row)
    require_read(by, cluster, place.topic)
    bounds = bounds_of(wire, place.topic)
    if not bounds:
        return Look(topic=place.topic, is_there=False)
    ends = {
        number: min(end, (before or {}).get(number, end)) for number, (_, end) in bounds.items()
    }
    firsts = {number: first for number, (first, _) in bounds.items()}
    choice = Choice(exception=exception, stage=stage, cause=cause)
    search = _Search(wire=wire, place=place, choice=choice, secrets=secrets_of(row))
    starts = search.run(firsts, ends)
    found = sorted(search.found, key=lambda one: (one.partition, -one.offset))
    return Look(
        topic=place.topic,
        rows=tuple(found[:MAX_SHOWN]),
        looked=search.looked,
        total=sum(end - first for first, end in bounds.values()),
        older=_older(found, starts, firsts),
    )


def causes(by: By, cluster: str, name: str, *, wire: Cluster) -> Causes:
    """Return the letters of a connector by cause. Raises NotFound, Unfit, Refused."""
    row = selectors.row_of(cluster, name)
    place = place_of(row)
    require_read(by, cluster, place.topic)
    bounds = bounds_of(wire, place.topic)
    if not bounds:
        return Causes(topic=place.topic, is_there=False)
    (tally, is_whole), secrets = _tally(wire, place.topic, bounds), secrets_of(row)
    return Causes(
        topic=place.topic,
        rows=tuple(
            CauseShown(
                id=one.cause.id,
                stage=one.cause.stage,
                exception=one.cause.exception,
                text=masked(one.cause.text, secrets),
                advice=one.cause.advice,
                letters=one.count,
                first_ms=one.first_ms,
                last_ms=one.last_ms,
                example="{}/{}".format(*one.place),
                message=masked(one.message, secrets),
            )
            for one in tally.counts()
        ),
        counted=tally.counted,
        total=sum(end - first for first, end in bounds.values()),
        others=tally.others,
        is_whole=is_whole,
    )


def _tally(
    wire: Cluster, topic: str, bounds: Mapping[int, tuple[int, int]]
) -> tuple[CauseTally, bool]:
    """Count the newest letters until the time is up; return whether these are all."""
    tally, deadline = CauseTally(), Deadline(COUNT_S)
    firsts = {number: first for number, (first, _) in bounds.items()}
    begins = {number: end for number, (_, end) in bounds.items()}
    for size in COUNT_WINDOWS:
        spans = _spans_before(begins, firsts, size)
        with closing(wire.read(topic, spans)) as batches:
            for records in batches:
                for record in records:
                    tally.add(letters.letter_of(record))
                if deadline.is_over():
                    return tally, False
        begins |= {span.partition: span.start for span in spans}
        if begins == firsts:
            break
    return tally, begins == firsts


def _spans_before(begins: Mapping[int, int], firsts: Mapping[int, int], size: int) -> list[Span]:
    """Return about `size` offsets before the given ones, an equal share of each partition."""
    share = max(1, size // len(firsts))
    return [
        Span(partition=number, start=max(first, begins[number] - share), end=begins[number])
        for number, first in firsts.items()
        if first < begins[number]
    ]


def bounds_of(wire: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """Return first offset and end of each partition; none if the topic does not exist."""
    count = wire.topics().get(topic, 0)
    found = wire.bounds([TopicPartition(topic=topic, partition=one) for one in range(count)])
    return {place.partition: ends for place, ends in found.items()}


class _Search:
    """Reads chosen letters window by window, backwards from the end."""

    def __init__(
        self, *, wire: Cluster, place: Place, choice: Choice, secrets: tuple[str, ...]
    ) -> None:
        self._wire = wire
        self._place = place
        self._choice = choice
        self._secrets = secrets
        self._partitions = wire.topics()
        self._deadline = Deadline(LOOK_S)
        self.found: list[Shown] = []
        self.looked = 0

    def run(self, firsts: Mapping[int, int], ends: Mapping[int, int]) -> Mapping[int, int]:
        """Read until there are enough; return the lowest offset read in each partition."""
        begins = dict(ends)
        for size in WINDOWS:
            spans = _spans_before(begins, firsts, size)
            # In an incomplete window it is unknown which letters are missing.
            if not spans or not self._has_read(spans):
                break
            begins |= {span.partition: span.start for span in spans}
            if len(self.found) >= MAX_SHOWN:
                break
        return begins

    def _has_read(self, spans: Sequence[Span]) -> bool:
        found, looked = [], 0
        with closing(self._wire.read(self._place.topic, spans)) as some:
            for records in some:
                looked += len(records)
                found += [shown for record in records if (shown := self._shown(record))]
                if self._deadline.is_over():
                    return False
        self.found += found
        self.looked += looked
        return True

    def _shown(self, record: Record) -> Shown | None:
        letter = letters.letter_of(record)
        if not self._choice.has(letter):
            return None
        made = letters.again(
            letter, self._place.to, Destination.RETRY, run="", partitions=self._partitions
        )
        return _shown(letter, made if isinstance(made, Unsent) else None, self._secrets)


def _older(
    found: Sequence[Shown], begins: Mapping[int, int], firsts: Mapping[int, int]
) -> dict[int, int]:
    """Return the offsets before which the next look begins: of the last row, or of the look."""
    older = dict(begins)
    for one in found[MAX_SHOWN:]:
        older[one.partition] = max(older[one.partition], one.offset + 1)
    return older if any(older[number] > first for number, first in firsts.items()) else {}


def _shown(letter: Letter, unsent: Unsent | None, secrets: tuple[str, ...]) -> Shown:
    cause, record, origin = letter.cause, letter.record, letter.origin
    own = [pair for pair in record.headers if not pair[0].startswith(PREFIX)]
    shared = letter.shared_cause
    return Shown(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        topic="" if origin is None else origin.topic,
        topic_partition=None if origin is None else origin.partition,
        topic_offset=None if origin is None else origin.offset,
        connector=cause.connector,
        task=cause.task,
        stage=cause.stage,
        class_name=cause.class_name,
        exception=cause.exception,
        message=masked(cause.message, secrets)[:MAX_PREVIEW_BYTES],
        stack=masked(cause.stack, secrets),
        cause=replace(shared, text=masked(shared.text, secrets)),
        attempts=0 if origin is None else origin.attempt,
        key=_preview(record.key),
        value=_preview(record.value),
        headers=tuple((name, _preview(value).text) for name, value in own[:MAX_HEADERS]),
        unsent=unsent,
    )


def _preview(content: bytes | None) -> Preview:
    if content is None:
        return Preview(text="", size=None)
    text = content[:MAX_PREVIEW_BYTES].decode("utf-8", "replace")
    return Preview(text=text, size=len(content))


def secrets_of(row: models.Connector) -> tuple[str, ...]:
    """Return the passwords of a config, which an older worker may have written into letters."""
    try:
        clear = selectors.opened(row).values()
    except CannotOpen as error:
        # Secrets could not be masked.
        raise Unfit(str(error)) from None
    return tuple(text.reveal() for text in clear if isinstance(text, Opened) and text.reveal())
