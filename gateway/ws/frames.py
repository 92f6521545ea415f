"""Defines, parses and formats the messages of a socket: a closed table of frames. Pure.

Every frame is one JSON object in a text message; its field `type` names the frame.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from gateway.kafka.readers import values
from gateway.kafka.topic_pattern import MAX_CHARS
from gateway.kafka.values import Delivered, NewRecord, Place, Record
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.drafts import MAX_HEADERS, HeaderIn
from gateway.rest.produce.formats import Format as Written
from gateway.rest.produce.formats import binary, decoded
from gateway.rest.records.question import Format
from gateway.rest.records.record_json import gap_value, record_text

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


class FromClient(Part, tag_field="type", tag=str.lower):
    """A frame of a client."""


class Auth(FromClient):
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TOKEN)]


class Produce(FromClient):
    id: Name
    topic: Topic
    # From a factory: a default of this type has no representation in the description.
    key: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    value: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    format: FormatName = "string"
    headers: Annotated[list[HeaderIn], msgspec.Meta(max_length=MAX_HEADERS)] | None = None
    partition: Index | None = None
    timestamp_ms: Milliseconds | None = None


class Subscribe(FromClient):
    sid: Name
    credit: Allowance
    group: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_GROUP)] | None = None
    topics: Annotated[list[Topic], msgspec.Meta(min_length=1, max_length=MAX_TOPICS)] | None = None
    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATTERN)] | None = None
    assign: Partitions | None = None
    start: Start = msgspec.field(name="from", default="latest")
    format: FormatName = "string"


class Credit(FromClient):
    sid: Name
    records: Records = 0
    bytes: Bytes = 0


class Pause(FromClient):
    """All partitions of a subscription, or some."""

    sid: Name
    partitions: Partitions | None = None


class Resume(FromClient):
    sid: Name
    partitions: Partitions | None = None


class Seek(FromClient):
    sid: Name
    offsets: Annotated[list[At], msgspec.Meta(min_length=1, max_length=MAX_PLACES)]


class Ack(FromClient):
    """Commits, for a group: the offset behind the last record that is done with."""

    sid: Name
    offsets: Annotated[list[At], msgspec.Meta(min_length=1, max_length=MAX_PLACES)]


class Unsubscribe(FromClient):
    sid: Name


class Ping(FromClient):
    id: Name | None = None


ClientFrame = Auth | Produce | Subscribe | Credit | Ack | Pause | Resume | Seek | Unsubscribe | Ping
TYPES: Final = "auth, produce, subscribe, credit, ack, pause, resume, seek, unsubscribe, ping"
DECODER: Final[msgspec.json.Decoder[ClientFrame]] = msgspec.json.Decoder(ClientFrame)


def parsed(text: str) -> ClientFrame:
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


# --- frames of the server ----------------------------------------------------------------------


class PlaceTold(Part):
    topic: str
    partition: int


class BegunAt(PlaceTold, omit_defaults=True):
    """A partition and where it begins, which a group does not report."""

    offset: int | None = None


class KeptAt(PlaceTold):
    offset: int


class HeaderTold(Part):
    """The value is base64."""

    name: str
    value: str | None


class RecordTold(Part):
    """`error` says which of the two could not be written in the format, and is base64."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: Literal["create", "append"] | None
    key: msgspec.Raw
    value: msgspec.Raw
    headers: list[HeaderTold]
    error: str | msgspec.UnsetType = msgspec.UNSET


class FromServer(Part, tag_field="type", tag=str.lower):
    """A frame of the server."""


class Ready(FromServer):
    protocol: str
    cluster_id: str
    caller: str


class Receipt(FromServer):
    id: str
    topic: str
    partition: int
    offset: int
    timestamp: int | None


class Throttle(FromServer):
    ms: int
    id: str


class Assigned(FromServer):
    sid: str
    partitions: list[BegunAt]


class Batch(FromServer):
    """Records of one partition; `hw` and `lag` where its end is known."""

    sid: str
    topic: str
    partition: int
    records: list[RecordTold]
    hw: int | msgspec.UnsetType = msgspec.UNSET
    lag: int | msgspec.UnsetType = msgspec.UNSET


class Acked(FromServer):
    sid: str
    offsets: list[KeptAt]


class Gap(FromServer):
    """Offsets from `from` on that no client gets; the next record is at `to`."""

    sid: str
    topic: str
    partition: int
    since: int = msgspec.field(name="from")
    to: int
    reason: Literal["deleted", "cut", "no_record"]
    message: str


class Revoked(FromServer):
    sid: str
    partitions: list[PlaceTold]
    reason: str
    ended: bool


class Error(FromServer):
    """Of a frame that is named by `id` or `sid`, or of the whole socket."""

    error_code: int
    message: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    sid: str | msgspec.UnsetType = msgspec.UNSET


class Pong(FromServer):
    id: str | msgspec.UnsetType = msgspec.UNSET


ServerFrame = Ready | Receipt | Throttle | Assigned | Batch | Acked | Gap | Revoked | Error | Pong


def ready(cluster_id: str, caller: str) -> str:
    return _text(Ready(protocol=PROTOCOL, cluster_id=cluster_id, caller=caller))


def pong(name: str | None) -> str:
    return _text(Pong(id=msgspec.UNSET if name is None else name))


def receipt(name: str, topic: str, delivered: Delivered) -> str:
    return _text(
        Receipt(
            id=name,
            topic=topic,
            partition=delivered.partition,
            offset=delivered.offset,
            timestamp=delivered.timestamp_ms,
        )
    )


def throttle(wait_s: float, name: str) -> str:
    return _text(Throttle(id=name, ms=max(1, int(wait_s * 1000))))


def error(failed: ApiError, **names: str) -> str:
    """Report a failure of one frame, named by `id` or `sid`, or of the whole socket."""
    return _text(Error(error_code=failed.code.number, message=failed.message, **names))


def assigned(sid: str, positions: Mapping[Place, int]) -> str:
    starts = [
        BegunAt(topic=place.topic, partition=place.partition, offset=positions[place])
        for place in sorted(positions)
    ]
    return _text(Assigned(sid=sid, partitions=starts))


def joined(sid: str, places: Collection[Place]) -> str:
    """Report partitions that a group has assigned; they start at the committed offsets."""
    starts = [BegunAt(topic=place.topic, partition=place.partition) for place in sorted(places)]
    return _text(Assigned(sid=sid, partitions=starts))


def acked(sid: str, offsets: Mapping[Place, int]) -> str:
    kept = [
        KeptAt(topic=place.topic, partition=place.partition, offset=offsets[place])
        for place in sorted(offsets)
    ]
    return _text(Acked(sid=sid, offsets=kept))


def revoked(sid: str, places: Sequence[Place], reason: str, *, is_over: bool) -> str:
    """Report partitions that a subscription no longer reads, and whether it has ended."""
    lost = [PlaceTold(topic=place.topic, partition=place.partition) for place in places]
    return _text(Revoked(sid=sid, partitions=lost, reason=reason, ended=is_over))


def gap(sid: str, gap: values.Gap) -> str:
    return _dumped({"type": "gap", "sid": sid, **gap_value(gap)})


def batch(sid: str, records: Sequence[Record], form: Format, end: int | None) -> str:
    """Format records of one partition, with their distance to its end if that is known."""
    last = records[-1]
    topic = json.dumps(last.topic)
    written = ",".join(record_text(record, form) for record in records)
    far = ""
    if end is not None:
        hw = max(end, last.offset + 1)
        far = f',"hw":{hw},"lag":{hw - last.offset - 1}'
    return (
        f'{{"type":"batch","sid":{json.dumps(sid)},"topic":{topic},"partition":{last.partition}'
        f'{far},"records":[{written}]}}'
    )


def _text(frame: FromServer) -> str:
    return _dumped(msgspec.to_builtins(frame))


def _dumped(value: object) -> str:
    # ASCII, so that `Outbox` can count characters as bytes.
    return json.dumps(value, separators=(",", ":"))
