"""Parses the bodies of consumer calls into values; refuses unknown fields and invalid values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gateway.kafka.member import Reset, Subscription
from gateway.kafka.topic_pattern import BadPattern, TopicPattern
from gateway.kafka.values import Place, Position, PositionKind
from gateway.rest import bodies
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import names
from gateway.rest.produce.formats import milliseconds, whole
from gateway.rest.records.question import Format

T = TypeVar("T")

V2: Final = "application/vnd.kafka.v2+json"
JSON: Final = "application/json"
EMBEDDED: Final = {
    Format.BINARY: "application/vnd.kafka.binary.v2+json",
    Format.JSON: "application/vnd.kafka.json.v2+json",
}
FORMATS: Final = {"binary": Format.BINARY, "json": Format.JSON}
OF_REGISTRY: Final = frozenset({"avro", "jsonschema", "protobuf"})
# Fits the names of some thousand partitions.
MAX_BODY_BYTES: Final = 1_048_576
# Topics or partitions of one call; a group's client names some dozens.
MAX_NAMED: Final = 10_000
MAX_OFFSET: Final = 2**63 - 1
MAX_PARTITION: Final = 2**31 - 1
# How long a fetch waits for records: the default of the published interface, and the longest time
# to hold a connection without sending.
WAIT_MS: Final = 1_000
MAX_WAIT_MS: Final = 30_000
MAX_MIN_BYTES: Final = 10_000_000
SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A consumer to be created, with the defaults of the interface."""

    name: str = ""
    form: Format = Format.BINARY
    reset: Reset = Reset.LATEST
    commits_itself: bool = True
    min_bytes: int = -1
    wait_ms: int = WAIT_MS


def body_of(call: Call, text: bytes) -> Mapping[str, Any]:
    """Return the object in the body; an empty one if there is no body."""
    given = call.headers.get("content-type", V2).partition(";")[0].strip().lower()
    taken = (V2, JSON, *EMBEDDED.values())
    if not text.strip():
        return {}
    if given not in taken:
        raise ApiError(Code.UNSUPPORTED_TYPE, f"the body is {given[:SHOWN]!r}: send it as {V2}")
    return bodies.parsed(text)


def draft_of(body: Mapping[str, Any]) -> Draft:
    readers: Mapping[str, tuple[str, Callable[[str, object], object]]] = {
        "name": ("name", _name),
        # Older names of the published interface; of both, the later line wins.
        "id": ("name", _name),
        "format": ("form", _format),
        "auto.offset.reset": ("reset", _reset),
        "auto.commit.enable": ("commits_itself", _boolean),
        "responseMinBytes": ("min_bytes", _min_bytes),
        "fetch.min.bytes": ("min_bytes", _min_bytes),
        "requestWaitMs": ("wait_ms", _wait_ms),
        "consumer.request.timeout.ms": ("wait_ms", _wait_ms),
    }
    _only(body, readers)
    found = {
        field: read(key, body[key])
        for key, (field, read) in readers.items()
        if body.get(key) is not None
    }
    return Draft(**found)  # type: ignore[arg-type]  # each reader returns what its field is


def subscription_of(body: Mapping[str, Any]) -> Subscription | TopicPattern:
    """Return topics or a pattern; exactly one must be given."""
    _only(body, ("topics", "topic_pattern"))
    topics, pattern = body.get("topics"), body.get("topic_pattern")
    if topics is not None and pattern is not None:
        raise ApiError(
            Code.ILLEGAL_STATE,
            "Illegal state: Subscription to topics, partitions and pattern are mutually exclusive:"
            " the body has topics and topic_pattern; leave one of them out",
        )
    if topics is None and pattern is None:
        raise unprocessable("the body names no topic: give topics, or topic_pattern")
    if pattern is not None:
        if not isinstance(pattern, str):
            raise unprocessable(f"topic_pattern is {shown(pattern)}: give an expression, as ord.*")
        try:
            return TopicPattern(pattern)
        except BadPattern as error:
            raise unprocessable(f"topic_pattern: {error}") from None
    found = _list(body, "topics")
    if not found or not all(isinstance(topic, str) and topic for topic in found):
        raise unprocessable(f"topics is {shown(topics)}: give a list of names")
    if any(topic.startswith("^") for topic in found):
        raise unprocessable(
            "a topic's name never begins with ^: give an expression in topic_pattern"
        )
    return Subscription(topics=tuple(dict.fromkeys(found)))


def places_of(body: Mapping[str, Any], key: str = "partitions") -> Sequence[Place]:
    """Return partitions by topic and number, in their order, without duplicates."""
    _only(body, (key,))
    return list(dict.fromkeys(_place(each, key) for each in _list(body, key)))


def offsets_of(body: Mapping[str, Any]) -> Mapping[Place, int]:
    """Return the offset of each named partition."""
    return {_place(each, "offsets"): _offset(each) for each in _list(body, "offsets")}


def positions_of(body: Mapping[str, Any]) -> Mapping[Place, Position]:
    """Return the positions to continue from, by offset or by time."""
    _only(body, ("offsets", "timestamps"))
    found = {
        place: Position(kind=PositionKind.OFFSET, value=offset)
        for place, offset in offsets_of(body).items()
    }
    for each in _list(body, "timestamps"):
        time = each.get("timestamp") if isinstance(each, dict) else None
        if not isinstance(time, str):
            raise unprocessable(f"timestamp is {shown(time)}: write it like 2026-01-31T12:00:00Z")
        position = Position(kind=PositionKind.TIME, value=milliseconds(time))
        found[_place(each, "timestamps")] = position
    return found


def unprocessable(message: str) -> ApiError:
    return ApiError(Code.UNPROCESSABLE, message)


def shown(value: object) -> str:
    return repr(value)[:SHOWN]


def _only(body: Mapping[str, Any], known: "Sequence[str] | Mapping[str, object]") -> None:
    for key in body:
        if key not in known:
            raise unprocessable(f"{shown(key)} is not a field here: give {', '.join(known)}")


def _list(body: Mapping[str, Any], key: str) -> list[Any]:
    found = body.get(key) or []
    if not isinstance(found, list) or len(found) > MAX_NAMED:
        raise unprocessable(f"{key} is {shown(found)}: give a list of at most {MAX_NAMED}")
    return found


def _place(each: object, key: str) -> Place:
    topic, partition = (
        (each.get("topic"), each.get("partition")) if isinstance(each, dict) else (None, None)
    )
    number = whole(partition, MAX_PARTITION)
    if not isinstance(topic, str) or not topic or number is None:
        raise unprocessable(f"{key} has {shown(each)}: name a topic and the number of a partition")
    return Place(topic=topic, partition=number)


def _offset(each: Mapping[str, Any]) -> int:
    # One below the largest, because the next offset is committed.
    offset = whole(each.get("offset"), MAX_OFFSET - 1)
    if offset is None:
        raise unprocessable(f"offset is {shown(each.get('offset'))}: give a number from 0 on")
    return offset


def _name(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise invalid(key, value, "give a text")
    names.check("consumer", value)
    return value


def _format(key: str, value: object) -> Format:
    if value in OF_REGISTRY:
        raise invalid(
            key,
            value,
            "it needs a schema registry, and this gateway has none: say binary or json",
        )
    found = FORMATS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise invalid(key, value, "say binary or json")
    return found


def _reset(key: str, value: object) -> Reset:
    try:
        return Reset(value)
    except ValueError:
        raise invalid(key, value, "say earliest, latest or none") from None


def _boolean(key: str, value: object) -> bool:
    # The published interface takes it as text; clients send text or booleans.
    text = str(value).lower()
    if text not in {"true", "false"}:
        raise invalid(key, value, "say true or false")
    return text == "true"


def _min_bytes(key: str, value: object) -> int:
    return _bounded(key, value, least=-1, most=MAX_MIN_BYTES)


def _wait_ms(key: str, value: object) -> int:
    return _bounded(key, value, least=1, most=MAX_WAIT_MS)


def _bounded(key: str, value: object, *, least: int, most: int) -> int:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    number = (
        int(text) if text.lstrip("-").isdecimal() and text.isascii() and len(text) < 12 else None
    )
    if number is None or not least <= number <= most:
        raise ApiError(
            Code.CONSUMER_CONFIG, f"{key} is {shown(value)}: give a number from {least} to {most}"
        )
    return number


def invalid(key: str, value: object, advice: str) -> ApiError:
    return ApiError(
        Code.BAD_CONSUMER_CONFIG,
        f"Invalid consumer configuration: {key} is {shown(value)}; {advice}",
    )
