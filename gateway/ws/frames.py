"""Defines, parses and formats the messages of a socket: a closed table of frames. Pure.

Every frame is one JSON object in a text message; its field `type` names the frame.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from gateway.kafka.readers.values import Gap
from gateway.kafka.topic_pattern import MAX_CHARS
from gateway.kafka.values import Delivered, NewRecord, Place, Record
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.drafts import MAX_HEADERS, HeaderIn
from gateway.rest.produce.formats import Format as Written
from gateway.rest.produce.formats import binary, decoded
from gateway.rest.records.question import Format
from gateway.rest.records.shown import gap_value, record_text

# The sub-protocol that identifies this table to both sides.
PROTOCOL: Final = "samsa.v1"
# A record of the default size limit of topics, in base64, and its frame.
MAX_FRAME: Final = 2 * 1024 * 1024
# Each opens a reading of its own.
MAX_TOPICS: Final = 100
# Partitions of all subscriptions of one socket; a single HTTP stream may read as many.
MAX_PLACES: Final = 256
# The largest credit. More would be no limit, and a sum of credits must stay an integer.
MAX_CREDIT_RECORDS: Final = 1_000_000
MAX_CREDIT_BYTES: Final = 1024**3
# The names that a client chooses are repeated in every frame.
MAX_NAME: Final = 100
# A token has some fifty characters.
MAX_TOKEN: Final = 4_096
# Kafka's own limit of topic names, and enough for those of groups.
MAX_TOPIC: Final = 249
MAX_GROUP: Final = 249
# The limit of any expression; see `gateway.kafka.topic_pattern`.
MAX_PATTERN: Final = MAX_CHARS

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Topic = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TOPIC)]
Index = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Records = Annotated[int, msgspec.Meta(ge=0, le=MAX_CREDIT_RECORDS)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=MAX_CREDIT_BYTES)]
FormatName = Literal["binary", "string", "json"]


class Part(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something inside of a frame."""


class Partition(Part):
    topic: Topic
    partition: Index

    def place(self) -> Place:
        return Place(topic=self.topic, partition=self.partition)


class At(Partition):
    offset: Offset


class Since(Part):
    """Where to begin: one of the two."""

    time_ms: Milliseconds | None = None
    offsets: Annotated[list[At], msgspec.Meta(min_length=1, max_length=MAX_PLACES)] | None = None


Start = Literal["earliest", "latest"] | Since
Partitions = Annotated[list[Partition], msgspec.Meta(min_length=1, max_length=MAX_PLACES)]


class Allowance(Part):
    """How much may be sent. Without bytes, only records are counted."""

    records: Records
    bytes: Bytes | None = None


class Frame(Part, tag_field="type", tag=str.lower):
    """What a client says."""


class Auth(Frame):
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TOKEN)]


class Produce(Frame):
    id: Name
    topic: Topic
    # From a factory: a default of this type has no representation in the description.
    key: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    value: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    format: FormatName = "string"
    headers: Annotated[list[HeaderIn], msgspec.Meta(max_length=MAX_HEADERS)] | None = None
    partition: Index | None = None
    timestamp_ms: Milliseconds | None = None


class Subscribe(Frame):
    sid: Name
    credit: Allowance
    group: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_GROUP)] | None = None
    topics: Annotated[list[Topic], msgspec.Meta(min_length=1, max_length=MAX_TOPICS)] | None = None
    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATTERN)] | None = None
    assign: Partitions | None = None
    start: Start = msgspec.field(name="from", default="latest")
    format: FormatName = "string"


class Credit(Frame):
    sid: Name
    records: Records = 0
    bytes: Bytes = 0


class Pause(Frame):
    """All partitions of a subscription, or some."""

    sid: Name
    partitions: Partitions | None = None


class Resume(Frame):
    sid: Name
    partitions: Partitions | None = None


class Seek(Frame):
    sid: Name
    offsets: Annotated[list[At], msgspec.Meta(min_length=1, max_length=MAX_PLACES)]


class Ack(Frame):
    """Commits, for a group: the offset behind the last record that is done with."""

    sid: Name
    offsets: Annotated[list[At], msgspec.Meta(min_length=1, max_length=MAX_PLACES)]


class Unsubscribe(Frame):
    sid: Name


class Ping(Frame):
    id: Name | None = None


Said = Auth | Produce | Subscribe | Credit | Ack | Pause | Resume | Seek | Unsubscribe | Ping
TYPES: Final = "auth, produce, subscribe, credit, ack, pause, resume, seek, unsubscribe, ping"
DECODER: Final[msgspec.json.Decoder[Said]] = msgspec.json.Decoder(Said)


def parsed(text: str) -> Said:
    """Parse a frame of a client. Raises ApiError for an invalid one."""
    try:
        return DECODER.decode(text)
    except msgspec.ValidationError as error:
        raise ApiError(
            Code.UNPROCESSABLE, f"the frame does not fit: {error}; frames are {TYPES}"
        ) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ApiError(Code.BAD_REQUEST, f"the frame is not JSON: {error}") from None


def record_in(frame: Produce) -> NewRecord:
    """Return the record in a frame."""
    form = Written(frame.format.upper())
    try:
        return NewRecord(
            key=decoded(frame.key, form, "key"),
            value=decoded(frame.value, form, "value"),
            headers=tuple(
                (
                    header.name,
                    None
                    if header.value is None
                    else binary(header.value, f"header {header.name[:80]!r}"),
                )
                for header in frame.headers or ()
            ),
            partition=frame.partition,
            timestamp_ms=frame.timestamp_ms,
        )
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ApiError(Code.BAD_JSON, f"key or value is not JSON: {error}") from None


# --- what the server says ----------------------------------------------------------------------


def ready(cluster_id: str, caller: str) -> str:
    return _frame("ready", protocol=PROTOCOL, cluster_id=cluster_id, caller=caller)


def pong(name: str | None) -> str:
    return _frame("pong", **({} if name is None else {"id": name}))


def receipt(name: str, topic: str, told: Delivered) -> str:
    return _frame(
        "receipt",
        id=name,
        topic=topic,
        partition=told.partition,
        offset=told.offset,
        timestamp=told.timestamp_ms,
    )


def throttle(wait_s: float, name: str) -> str:
    return _frame("throttle", ms=max(1, int(wait_s * 1000)), id=name)


def error(failed: ApiError, **names: str) -> str:
    """Report a failure of one frame, named by `id` or `sid`, or of the whole socket."""
    return _frame("error", **failed.value(), **names)


def assigned(sid: str, positions: Mapping[Place, int]) -> str:
    return _frame("assigned", sid=sid, partitions=_offsets(positions))


def joined(sid: str, places: Collection[Place]) -> str:
    """Report partitions that a group has assigned; they start at the committed offsets."""
    told = [_place(place) for place in sorted(places)]
    return _frame("assigned", sid=sid, partitions=told)


def acked(sid: str, offsets: Mapping[Place, int]) -> str:
    return _frame("acked", sid=sid, offsets=_offsets(offsets))


def revoked(sid: str, places: Sequence[Place], reason: str, *, is_over: bool) -> str:
    """Report partitions that a subscription no longer reads, and whether it has ended."""
    told = [_place(place) for place in places]
    return _frame("revoked", sid=sid, partitions=told, reason=reason, ended=is_over)


def gap(sid: str, told: Gap) -> str:
    return _frame("gap", sid=sid, **gap_value(told))


def batch(sid: str, records: Sequence[Record], form: Format, end: int | None) -> str:
    """Format records of one partition, with their distance to its end if that is known."""
    last = records[-1]
    told = json.dumps(last.topic)
    written = ",".join(record_text(record, form) for record in records)
    far = ""
    if end is not None:
        hw = max(end, last.offset + 1)
        far = f',"hw":{hw},"lag":{hw - last.offset - 1}'
    return (
        f'{{"type":"batch","sid":{json.dumps(sid)},"topic":{told},"partition":{last.partition}'
        f'{far},"records":[{written}]}}'
    )


def _offsets(positions: Mapping[Place, int]) -> list[dict[str, object]]:
    return [{**_place(place), "offset": positions[place]} for place in sorted(positions)]


def _place(place: Place) -> dict[str, object]:
    return {"topic": place.topic, "partition": place.partition}


def _frame(kind: str, **fields: object) -> str:
    return json.dumps({"type": kind, **fields}, separators=(",", ":"))
