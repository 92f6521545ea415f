"""Parses a read request: which partitions, from where, how much. Pure.

Positions in an answer can be sent again: `next` of a complete answer is a `from`, and the id of an
event is its `Last-Event-ID`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import BEGINNING, END, Place, Position, PositionKind
from gateway.rest.codes import ApiError, Code

DEFAULT_RECORDS: Final = 100
MAX_RECORDS: Final = 10_000
DEFAULT_BYTES: Final = 1024 * 1024
# A complete answer is held as bytes, as text and as JSON: some four times this.
MAX_BYTES: Final = 2 * 1024 * 1024
DEFAULT_WAIT_S: Final = 1.0
# Proxies on the way would give up after a longer wait.
MAX_WAIT_S: Final = 30.0
# Each event carries the position of every partition, some twenty bytes each.
MAX_PARTITIONS: Final = 256
# The highest partition number and offset.
MAX_INDEX: Final = 2**31 - 1
MAX_OFFSET: Final = 2**63 - 1
# The event id while a pattern matches no topic: a client that resumes there gets everything.
NOWHERE: Final = "-"
FIELDS: Final = frozenset({"partition", "from", "max", "max_bytes", "wait", "format"})


class Format(Enum):
    """The format of keys and values; see `record_json`."""

    BINARY = "binary"
    STRING = "string"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    topics: tuple[str, ...]
    # None: all partitions of the topics.
    partitions: tuple[int, ...] | None
    # One position for all partitions, or one for each.
    start: Position | Mapping[Place, Position]
    format: Format
    # None: a stream without an end.
    max_records: int | None
    max_bytes: int
    wait_s: float
    # Instead of topics: a pattern, which matches topics that the caller may read.
    pattern: TopicPattern | None = None

    def starts(self, found: Mapping[str, Sequence[int]]) -> dict[Place, Position]:
        """Return the start of each selected partition that the topics have."""
        places = [
            Place(topic=topic, partition=index)
            for topic in (self.topics if self.pattern is None else sorted(found))
            for index in (found[topic] if self.partitions is None else self.partitions)
        ]
        if len(places) > MAX_PARTITIONS:
            topics, fewer = ", ".join(self.topics), "name some with partition=0,1,2"
            if self.pattern is not None:
                # A pattern matches whole topics, so no partitions can be given.
                topics, fewer = "its topics", "give a pattern that matches fewer topics"
            raise bad_request(
                f"{topics} have {len(places)} partitions, {MAX_PARTITIONS} can be"
                f" read at the same time: {fewer}"
            )
        if isinstance(self.start, Position):
            return dict.fromkeys(places, self.start)
        # Partitions added since then are read from their beginning.
        return {place: self.start.get(place, BEGINNING) for place in places}


def question_of(
    topics: Sequence[str],
    query: Mapping[str, str],
    *,
    is_stream: bool,
    last_event_id: str = "",
    pattern: TopicPattern | None = None,
) -> Question:
    """Return the request of a query. Raises ApiError for an invalid one."""
    if unknown := sorted(query.keys() - FIELDS):
        raise bad_request(
            f"unknown field {unknown[0][:80]!r}: take one of {', '.join(sorted(FIELDS))}"
        )
    start: Position | Mapping[Place, Position] = END if is_stream else BEGINNING
    if last_event_id:
        start = _of_event(topics, last_event_id, pattern)
    elif "from" in query:
        start = _start(topics, query["from"])
    return Question(
        topics=tuple(dict.fromkeys(topics)),
        partitions=_partitions(query["partition"]) if "partition" in query else None,
        start=start,
        format=_format(query.get("format", Format.STRING.value)),
        max_records=_number(
            query, "max", default=None if is_stream else DEFAULT_RECORDS, most=MAX_RECORDS
        ),
        max_bytes=_number(query, "max_bytes", default=None, most=MAX_BYTES) or DEFAULT_BYTES,
        wait_s=_wait(query["wait"]) if "wait" in query else DEFAULT_WAIT_S,
        pattern=pattern,
    )


def positions_text(positions: Mapping[Place, int]) -> str:
    """Return positions in the format of `from`."""
    return ",".join(f"{place.partition}:{positions[place]}" for place in sorted(positions))


def event_id(positions: Mapping[Place, int]) -> str:
    """Return positions in the format of `Last-Event-ID`."""
    texts = (f"{place.topic}:{place.partition}:{positions[place]}" for place in sorted(positions))
    return ",".join(texts) or NOWHERE


def bad_request(message: str) -> ApiError:
    return ApiError(Code.BAD_REQUEST, message)


def _start(topics: Sequence[str], text: str) -> Position | Mapping[Place, Position]:
    if text in {"beginning", "earliest"}:
        return BEGINNING
    if text in {"end", "latest"}:
        return END
    if _is_number(text):
        return _offset(text)
    if "T" in text:
        return Position(kind=PositionKind.TIME, value=_time_ms(text))
    found: dict[Place, Position] = {}
    for part in text.split(","):
        found |= _pair(topics[0] if topics else "", part)
    if len(topics) != 1:
        raise bad_request(
            f"from is {text[:80]!r}: for several topics, give positions in Last-Event-ID"
        )
    return _few(found)


def _of_event(
    topics: Sequence[str], text: str, pattern: TopicPattern | None
) -> Mapping[Place, Position]:
    found: dict[Place, Position] = {}
    for part in [] if text == NOWHERE else text.split(","):
        topic, _, rest = part.strip().partition(":")
        is_read = topic in topics if pattern is None else bool(pattern.among([topic]))
        if not is_read:
            wanted = ", ".join(topics) if pattern is None else repr(pattern.text)
            raise bad_request(f"Last-Event-ID names {topic[:80]!r}, and {wanted} are read")
        found |= _pair(topic, rest)
    return _few(found)


def _pair(topic: str, text: str) -> dict[Place, Position]:
    index, colon, offset = text.partition(":")
    if not colon or not _is_number(index) or not _is_number(offset) or int(index) > MAX_INDEX:
        raise bad_request(
            f"no position is {text[:80]!r}: give beginning, end, an offset, a time like "
            "2026-01-31T12:00:00Z, or partition:offset,partition:offset as in the field next of "
            "an answer"
        )
    return {Place(topic=topic, partition=int(index)): _offset(offset)}


def _few(found: dict[Place, Position]) -> dict[Place, Position]:
    if len(found) > MAX_PARTITIONS:
        raise bad_request(f"{len(found)} positions are given, {MAX_PARTITIONS} are taken at most")
    return found


def _offset(text: str) -> Position:
    value = int(text)
    if value > MAX_OFFSET:
        raise bad_request(f"offset {text} is larger than any: the last one is {MAX_OFFSET}")
    return Position(kind=PositionKind.OFFSET, value=value)


def _time_ms(text: str) -> int:
    try:
        # The plus sign of a UTC offset has become a space in the decoded query.
        found = datetime.fromisoformat(text.replace(" ", "+"))
        known = found if found.tzinfo else found.replace(tzinfo=UTC)
        return max(0, int(known.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise bad_request(
            f"from is not a time: {text[:80]!r}; write it like 2026-01-31T12:00:00Z"
        ) from None


def _partitions(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(_is_number(part) and int(part) <= MAX_INDEX for part in parts):
        raise bad_request(f"partition is {text[:80]!r}: give a number, or some like 0,1,2")
    return tuple(sorted({int(part) for part in parts}))


def _format(text: str) -> Format:
    try:
        return Format(text)
    except ValueError:
        known = ", ".join(one.value for one in Format)
        raise bad_request(f"format is {text[:80]!r}: take one of {known}") from None


def _number(query: Mapping[str, str], field: str, *, default: int | None, most: int) -> int | None:
    if field not in query:
        return default
    text = query[field]
    if not _is_number(text) or not 1 <= int(text) <= most:
        raise bad_request(f"{field} is {text[:80]!r}: give a number from 1 to {most}")
    return int(text)


def _wait(text: str) -> float:
    whole, _, part = text.partition(".")
    if _is_number(whole) and (not part or _is_number(part)) and float(text) <= MAX_WAIT_S:
        return float(text)
    raise bad_request(f"wait is {text[:80]!r}: give seconds, {MAX_WAIT_S:.0f} at most")


def _is_number(text: str) -> bool:
    # Any offset has at most nineteen digits; Python refuses to parse thousands.
    return text.isascii() and text.isdigit() and len(text) <= 19
