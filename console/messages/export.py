"""Formats records as a file: lines of JSON, or CSV without spreadsheet formulas. Pure.

A file is sent while records are read, so its HTTP status says nothing about its completeness: its
last line does. Keys and values are in the forms of a list, but whole; where such a text alone does
not give the bytes of the record, they follow in base64.
"""

import csv
import io
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from typing import Any, Final, NamedTuple

from console.messages.forms import Shown, show
from console.messages.lines import Forms, encoded
from console.spreadsheets import as_text, cell
from gateway.kafka.readers.hits import Sizes
from gateway.kafka.values import Header, Record

# No record is longer, so nothing is cut.
WHOLE: Final = 2**31
# New ones come last: programs may take them by their number.
COLUMNS: Final = (
    *("partition", "offset", "timestamp", "key_kind", "key", "value_kind", "value", "headers"),
    *("is_cut", "key_schema_id", "key_base64", "value_schema_id", "value_base64"),
    "headers_base64",
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class FileForm(Enum):
    NDJSON = "ndjson"
    CSV = "csv"


class FileKind(NamedTuple):
    content_type: bytes
    first: bytes
    write: Callable[[Mapping[str, Any]], bytes]
    last: Callable[[Mapping[str, Any]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Formats the records of one file."""

    forms: Forms
    form: FileForm
    zone: tzinfo

    def line(self, record: Record, sizes: Sizes | None = None) -> bytes:
        key, value = self.forms.shown(record)
        headers: list[list[str | None]] = [
            [name, _text(show(content))] for name, content in record.headers
        ]
        is_cut = record.has_unread_headers or (sizes is not None and _is_cut(record, sizes))
        return FILES[self.form].write(
            {
                "partition": record.partition,
                "offset": str(record.offset),
                "timestamp": _moment(record.timestamp_ms, self.zone),
                "key_kind": key.kind,
                "key": _text(key),
                "value_kind": value.kind,
                "value": _text(value),
                "headers": headers,
                "is_cut": is_cut,
                "key_schema_id": key.schema_id,
                "key_base64": self._base64(record.key, _text(key)),
                "value_schema_id": value.schema_id,
                "value_base64": self._base64(record.value, _text(value)),
                "headers_base64": self._headers_base64(record.headers, headers),
            }
        )

    def _base64(self, data: bytes | None, text: str | None) -> str | None:
        """Return a part in base64; None if its text in the file gives the same bytes."""
        if data is None or (text is not None and _is_same(text, data) and self._keeps(text)):
            return None
        return b64encode(data).decode()

    def _headers_base64(
        self, headers: Sequence[Header], texts: list[list[str | None]]
    ) -> list[list[str | None]] | None:
        """Return names and values in base64; None if their texts give the same bytes."""
        pairs = zip(headers, texts, strict=True)
        is_same = all(
            value is None or _is_same(text or "", value) for (_, value), (_, text) in pairs
        )
        if is_same and self._keeps(texts):
            return None
        return [
            [
                b64encode(name.encode()).decode(),
                None if value is None else b64encode(value).decode(),
            ]
            for name, value in headers
        ]

    def _keeps(self, content: object) -> bool:
        """Tell whether a file of this form has the content as it is."""
        return self.form is FileForm.NDJSON or cell(content) == as_text(content)


def _is_same(text: str, data: bytes) -> bool:
    return text.encode("utf-8", "replace") == data


def _is_cut(record: Record, sizes: Sizes) -> bool:
    return (
        sizes.key > len(record.key or b"")
        or sizes.value > len(record.value or b"")
        or sizes.headers > len(record.headers)
    )


def forms_of(forms: Forms) -> Forms:
    return Forms(key=forms.key, value=forms.value, most=WHOLE)


def _text(shown: Shown) -> str | None:
    return None if shown.kind == "null" else shown.text


def _moment(timestamp_ms: int | None, zone: tzinfo) -> str | None:
    if timestamp_ms is None:
        return None
    try:
        moment = (EPOCH + timedelta(milliseconds=timestamp_ms)).astimezone(zone)
    except (OverflowError, ValueError):
        # A producer may set any number, including one that is no date.
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds")


def _csv_line(row: Mapping[str, Any]) -> bytes:
    cells = (cell(row[name]) for name in COLUMNS)
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue().encode("utf-8", "replace")


def _csv_note(line: Mapping[str, Any]) -> bytes:
    out = io.StringIO()
    words = {"error": "message", "gap": "reason", "done": "sentence"}[line["type"]]
    place = f" offsets {line['from']} to {line['to']}" if line["type"] == "gap" else ""
    csv.writer(out).writerow([f"# {line['type']}{place}: {line[words]}"])
    return out.getvalue().encode("utf-8", "replace")


def _header() -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(COLUMNS)
    return out.getvalue().encode()


FILES: Final[Mapping[FileForm, FileKind]] = {
    FileForm.NDJSON: FileKind(
        b"application/x-ndjson",
        b"",
        lambda row: encoded({"type": "record", **row}),
        encoded,
    ),
    FileForm.CSV: FileKind(b"text/csv; charset=utf-8", _header(), _csv_line, _csv_note),
}
# Notes at the end of a file besides its records; of more, the last ones are kept.
MAX_NOTES: Final = 1_000
NOTED: Final = frozenset({"error", "gap", "done"})
