"""Parses the form of one record: the input, the errors by field, and the record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from django.utils import timezone

from console.forms.typed_bytes import EMPTY, NULL, TEXT, NotTyped, read, typed
from gateway import moments
from gateway.kafka.values import Header, NewRecord, Record

# More headers than a person types; a program can send more.
MAX_HEADERS: Final = 50
# Empty rows, for browsers without the script that adds more.
SPARE_ROWS: Final = 2
MAX_HEADER_NAME: Final = 1_000
# The overhead of a batch of one record at most: its header, and lengths.
OVERHEAD: Final = 120
MAX_INT64: Final = 2**63 - 1


class Fields(Protocol):
    """The posted fields."""

    def get(self, name: str, /) -> str | None: ...
    def getlist(self, name: str, /) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A key, a value, or the value of a header, as typed."""

    kind: str = TEXT
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRow:
    name: str = ""
    part: Part = Part()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordForm:
    """The form of the page. `record` is set exactly if there are no errors."""

    key: Part = Part(kind=NULL)
    value: Part = Part()
    headers: tuple[HeaderRow, ...] = ()
    partition: str = ""
    timestamp: str = ""
    has_crlf: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)
    record: NewRecord | None = None

    @property
    def rows(self) -> tuple[HeaderRow, ...]:
        """The rows of headers, with some empty ones."""
        spare = min(SPARE_ROWS, MAX_HEADERS - len(self.headers))
        return (*self.headers, *[HeaderRow()] * spare)


def again(record: Record) -> RecordForm:
    """Return a form that writes a record again, into the same partition."""
    return RecordForm(
        key=_part(record.key),
        value=_part(record.value),
        headers=tuple(
            HeaderRow(name=name, part=_part(data, is_line=True)) for name, data in record.headers
        ),
        partition=str(record.partition),
    )


def form_of(fields: Fields, *, partitions: int, max_bytes: int | None) -> RecordForm:
    """Parse posted fields; `max_bytes` is the topic's batch limit, if known."""
    errors: dict[str, str] = {}
    has_crlf = fields.get("line_ends") == "crlf"
    key, key_bytes = _read(fields, "key", errors, has_crlf=has_crlf)
    value, value_bytes = _read(fields, "value", errors, has_crlf=has_crlf)
    rows, headers = _headers(fields, errors)
    partition = _noted(
        errors, "partition", lambda: _partition(_typed(fields, "partition"), partitions)
    )
    timestamp = _noted(errors, "timestamp", lambda: _timestamp(_typed(fields, "timestamp")))
    size = len(key_bytes or b"") + len(value_bytes or b"") + _size(headers)
    if max_bytes is not None and size + OVERHEAD > max_bytes:
        errors["value"] = (
            f"the record has {size:,} bytes, and this topic takes up to {max_bytes:,} in a batch: "
            "make it smaller, or raise max.message.bytes of the topic"
        )
    return RecordForm(
        key=key,
        value=value,
        headers=rows,
        partition=_typed(fields, "partition"),
        timestamp=_typed(fields, "timestamp"),
        has_crlf=has_crlf,
        errors=errors,
        record=None
        if errors
        else NewRecord(
            key=key_bytes,
            value=value_bytes,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp,
        ),
    )


def _part(data: bytes | None, *, is_line: bool = False) -> Part:
    kind, text = typed(data, is_line=is_line)
    return Part(kind=kind, text=text)


def _typed(fields: Fields, name: str) -> str:
    return (fields.get(name) or "").strip()


def _read(
    fields: Fields, name: str, errors: dict[str, str], *, has_crlf: bool
) -> tuple[Part, bytes | None]:
    kind, text = fields.get(f"{name}_kind") or TEXT, fields.get(name) or ""
    try:
        return Part(kind=kind, text=text), read(kind, text, has_crlf=has_crlf)
    except NotTyped as error:
        errors[name] = str(error)
        return Part(kind=kind, text=text, error=str(error)), None


def _headers(
    fields: Fields, errors: dict[str, str]
) -> tuple[tuple[HeaderRow, ...], tuple[Header, ...]]:
    posted = list(
        zip(
            fields.getlist("header_name"),
            fields.getlist("header_kind"),
            fields.getlist("header"),
            strict=False,
        )
    )
    given = [(name, kind, text) for name, kind, text in posted if name or text.strip()]
    if len(given) > MAX_HEADERS:
        errors["headers"] = f"{len(given)} headers are typed: {MAX_HEADERS} are the most here"
        given = given[:MAX_HEADERS]
    rows: list[HeaderRow] = []
    headers: list[Header] = []
    for number, (name, kind, text) in enumerate(given, 1):
        # A single line has no line ends; an empty text is an empty value.
        chosen = EMPTY if kind == TEXT and not text else kind
        error = ""
        if not name:
            error = f"header {number} has no name: type one, or clear the row"
        elif len(name) > MAX_HEADER_NAME:
            error = (
                f"the name of header {number} has {len(name):,} characters;"
                f" at most {MAX_HEADER_NAME:,} fit"
            )
        else:
            try:
                headers.append((name, read(chosen, text)))
            except NotTyped as reason:
                error = f"header {name[:60]!r}: {reason}"
        if error:
            errors.setdefault("headers", error)
        rows.append(HeaderRow(name=name, part=Part(kind=kind, text=text, error=error)))
    return tuple(rows), tuple(headers)


def _size(headers: Sequence[Header]) -> int:
    return sum(len(name.encode(errors="replace")) + len(data or b"") for name, data in headers)


def _noted(errors: dict[str, str], name: str, reading: Callable[[], int | None]) -> int | None:
    try:
        return reading()
    except NotTyped as error:
        errors[name] = str(error)
        return None


def _partition(text: str, partitions: int) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) >= partitions:
        raise NotTyped(
            f"{text[:60]!r} is not a partition of this topic: give 0 to {partitions - 1}, or "
            "nothing to let the key decide"
        )
    return int(text)


def _timestamp(text: str) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= 19:
        # A client takes 0 for "now".
        if not 1 <= int(text) <= MAX_INT64:
            raise NotTyped(f"{text} ms is not a time that can be sent: give 1 to {MAX_INT64}")
        return int(text)
    try:
        zone, now = timezone.get_current_timezone(), timezone.now()
        found = moments.milliseconds(text, zone=zone, now=now)
    except moments.NotAMoment as wrong:
        raise NotTyped(f"{wrong.message}: {wrong.next_step}, or nothing for now") from None
    if found < 1:
        raise NotTyped(f"{text[:60]!r} is before 1970: give a later time, or nothing for now")
    return found
