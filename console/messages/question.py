"""Parses the question of a browser from the query of a URL. Pure.

Everything is checked against a named limit before use; an invalid value is refused with the value
and a next step.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from enum import Enum
from typing import Final, TypeVar
from urllib.parse import parse_qs

from console.messages.forms import Form
from gateway import moments

E = TypeVar("E", bound=Enum)

# A cursor of a thousand partitions, and the longest filter with every character escaped.
MAX_QUERY_BYTES: Final = 65_536
MAX_FIELDS: Final = 32
# Partitions of one question: each needs a span, a row of progress, and an entry in the cursor.
MAX_PARTITIONS: Final = 1_000
DEFAULT_LIMIT: Final = 50
# Records of a page.
MAX_LIMIT: Final = 1_000
# Records of a file.
MAX_EXPORTED: Final = 100_000
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = moments.MAX_MS
# The longest name that a topic can have, and the id of a cluster.
MAX_NAME: Final = 249
FIRST_PAGE: Final = "start from the first page again"
NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


class Mode(Enum):
    NEWEST = "newest"
    OLDEST = "oldest"
    OFFSET = "offset"
    # In an address only: the oldest records of a time or later.
    TIME = "time"
    TAIL = "tail"


class BadQuestion(ValueError):
    """An invalid question; it says what to do next. `position` is in the filter."""

    def __init__(self, message: str, next_step: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.position = position


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time range of a question, in milliseconds since 1970; None: without an end there.

    A partition is read from its first record of `since` or later up to its first of `until` or
    later, so records with times out of order may be outside of it.
    """

    since: int | None = None
    until: int | None = None

    @property
    def is_open(self) -> bool:
        return self.since is None and self.until is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question; no partitions means all of them."""

    cluster: str
    topic: str
    partitions: tuple[int, ...] = ()
    mode: Mode = Mode.NEWEST
    # The first offset, in mode offset.
    start: int = 0
    window: Window = Window()
    limit: int = DEFAULT_LIMIT
    filter: str = ""
    key: Form = Form.AUTO
    value: Form = Form.AUTO
    # Where an earlier answer ended, by partition: the first offset that was not read, or, in mode
    # newest, the last one that was.
    cursor: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of one record: the key, the value, or a header by its number."""

    cluster: str
    topic: str
    partition: int
    offset: int
    header: int | None = None
    is_key: bool = False

    @property
    def name(self) -> str:
        if self.header is not None:
            return f"header:{self.header}"
        return "key" if self.is_key else "value"


class Query:
    """The fields of a query, each at most once."""

    def __init__(self, query: bytes) -> None:
        if len(query) > MAX_QUERY_BYTES:
            raise BadQuestion(
                f"the address has a query of {len(query)} bytes; at most {MAX_QUERY_BYTES} fit",
                "name fewer partitions, or shorten the filter",
            )
        try:
            self._fields = parse_qs(
                query.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS
            )
        except ValueError:
            raise BadQuestion(
                f"the query of the address cannot be read, or has more than {MAX_FIELDS} fields",
                "open the page again",
            ) from None

    def text(self, name: str, default: str = "") -> str:
        values = self._fields.get(name, [default])
        if len(values) != 1:
            raise BadQuestion(f"{name!r} is given {len(values)} times", "give it once")
        return values[0]

    def number(self, name: str, default: int | None, low: int, high: int) -> int:
        text = self.text(name)
        if not text and default is not None:
            return default
        if not NUMBER.fullmatch(text) or not low <= int(text) <= high:
            raise BadQuestion(
                f"{name!r} is {text[:60]!r}", f"give a whole number of {low:,} to {high:,}"
            )
        return int(text)

    def choice(self, name: str, kind: type[E], default: E) -> E:
        text = self.text(name) or default.value
        try:
            return kind(text)
        except ValueError:
            known = ", ".join(str(one.value) for one in kind)
            raise BadQuestion(f"{name!r} is {text[:60]!r}", f"give one of {known}") from None


def question_of(query: Query, *, zone: tzinfo, now: datetime, most: int = MAX_LIMIT) -> Question:
    """Parse a question; times without a zone are in that of the browser's pages."""
    mode = query.choice("mode", Mode, Mode.NEWEST)
    cursor = _cursor(query.text("cursor"))
    is_by_offset = mode is Mode.OFFSET and not cursor
    return Question(
        cluster=_name(query, "cluster"),
        topic=_name(query, "topic"),
        partitions=_partitions(query.text("partitions")),
        mode=Mode.OLDEST if mode is Mode.TIME else mode,
        start=query.number("from", None, 0, MAX_INT64) if is_by_offset else 0,
        window=_window(query, mode, zone, now),
        limit=query.number("limit", DEFAULT_LIMIT, 1, most),
        filter=query.text("filter"),
        key=query.choice("key", Form, Form.AUTO),
        value=query.choice("value", Form, Form.AUTO),
        cursor=cursor,
    )


def part_of(query: Query) -> Part:
    """Parse which part of which record is requested."""
    name = query.text("part", "value")
    kind, _, number = name.partition(":")
    is_header = kind == "header" and bool(NUMBER.fullmatch(number))
    if not is_header and name not in {"key", "value"}:
        raise BadQuestion(f"'part' is {name[:60]!r}", "give key, value, or header:0 and so on")
    return Part(
        cluster=_name(query, "cluster"),
        topic=_name(query, "topic"),
        partition=query.number("partition", None, 0, MAX_INT32),
        offset=query.number("offset", None, 0, MAX_INT64),
        header=int(number) if is_header else None,
        is_key=name == "key",
    )


def written_cursor(cursor: Mapping[int, int]) -> str:
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(cursor.items()))


def _name(query: Query, field_name: str) -> str:
    text = query.text(field_name)
    if not text or len(text) > MAX_NAME:
        raise BadQuestion(
            f"{field_name!r} has {len(text)} characters", f"name a {field_name} of 1 to {MAX_NAME}"
        )
    return text


def _partitions(text: str) -> tuple[int, ...]:
    if not text:
        return ()
    parts = text.split(",")
    if len(parts) > MAX_PARTITIONS:
        raise BadQuestion(
            f"{len(parts)} partitions are named", f"name {MAX_PARTITIONS:,} at most at a time"
        )
    for part in parts:
        if not NUMBER.fullmatch(part) or int(part) > MAX_INT32:
            raise BadQuestion(
                f"'partitions' has {part[:60]!r}", "give numbers with commas between them: 0,3"
            )
    return tuple(sorted({int(part) for part in parts}))


def _window(query: Query, mode: Mode, zone: tzinfo, now: datetime) -> Window:
    if mode is Mode.TAIL:
        return Window()
    since, until = query.text("from"), query.text("to")
    if mode is Mode.OFFSET or (mode is not Mode.NEWEST and query.text("cursor")):
        since = ""
    elif mode is Mode.TIME and not since:
        raise BadQuestion("mode time has no 'from'", moments.NEXT_STEP)
    return window_of(since, until, zone=zone, now=now)


def window_of(since: str, until: str, *, zone: tzinfo, now: datetime) -> Window:
    """Parse both ends of a time range; an empty text is no end."""
    try:
        start, end = moments.span(since, until, zone=zone, now=now)
    except moments.NotAMoment as wrong:
        raise BadQuestion(wrong.message, wrong.next_step) from None
    return Window(since=start, until=end)


def time_of(text: str, *, zone: tzinfo, now: datetime) -> int:
    """Return milliseconds since 1970 from a moment as people write it."""
    try:
        return moments.milliseconds(text, zone=zone, now=now)
    except moments.NotAMoment as wrong:
        raise BadQuestion(wrong.message, wrong.next_step) from None


def _cursor(text: str) -> dict[int, int]:
    cursor = {}
    for pair in text.split(",") if text else ():
        partition, _, offset = pair.partition(":")
        if not (NUMBER.fullmatch(partition) and NUMBER.fullmatch(offset)):
            raise BadQuestion(f"'cursor' has {pair[:60]!r}", FIRST_PAGE)
        cursor[int(partition)] = int(offset)
    if len(cursor) > MAX_PARTITIONS or max(cursor, default=0) > MAX_INT32:
        raise BadQuestion(
            f"'cursor' names {len(cursor)} partitions", f"name {MAX_PARTITIONS:,} at most at a time"
        )
    if max(cursor.values(), default=0) > MAX_INT64:
        raise BadQuestion("'cursor' has an offset beyond any log", FIRST_PAGE)
    return cursor
