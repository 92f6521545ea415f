"""Formats the lines of a stream, described in docs/howto/find-records.md: JSON objects. Pure.

Offsets and timestamps are strings, because browsers' numbers are exact only up to 2^53.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from console.messages.forms import MAX_SHOWN, MAX_SHOWN_HEADER, Form, Shown, fields_of, show
from console.messages.group_records import shown_key, shown_value
from gateway.kafka.readers.hits import Sizes
from gateway.kafka.readers.progress import Progress
from gateway.kafka.readers.values import Gap, GapReason, content_size
from gateway.kafka.values import Header, Record, TimestampKind

# Headers of a record in a list; further ones are counted.
MAX_HEADERS: Final = 50
# The length of a header's name; from a longer one on, headers are only counted, since a browser
# accepts a line of 4 MiB and a name may be as long as a record.
MAX_HEADER_NAME: Final = 1_024
OFFSETS_TOPIC: Final = "__consumer_offsets"
# Stands for all headers of a record if the client library cannot decode a name.
UNREAD_HEADERS: Final = {
    "name": "(not UTF-8)",
    # No header of the record, so the page must not copy it.
    "is_unread": True,
    "value": fields_of(
        Shown(
            kind="null",
            note="the name of a header is not UTF-8, so a consumer reads none of them;"
            " a search for the record shows them",
        )
    ),
}
STAMPS: Final = {TimestampKind.CREATE_TIME: "create", TimestampKind.LOG_APPEND_TIME: "append"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """The forms of keys and values of a topic."""

    key: Form = Form.AUTO
    value: Form = Form.AUTO
    most: int = MAX_SHOWN

    def shown(self, record: Record) -> tuple[Shown, Shown]:
        """Return the key and value of a record for display."""
        is_of_groups = record.topic == OFFSETS_TOPIC
        key = (
            shown_key(record.key, most=self.most)
            if is_of_groups and self.key is Form.AUTO
            else show(record.key, self.key, most=self.most)
        )
        value = (
            shown_value(record.key, record.value, most=self.most)
            if is_of_groups and self.value is Form.AUTO
            else show(record.value, self.value, most=self.most)
        )
        return key, value

    def line(self, record: Record, sizes: Sizes | None = None) -> bytes:
        """Return a record as a line; `sizes` are those of a record that was cut by a broker."""
        key, value = self.shown(record)
        headers = list(takewhile(_has_short_name, record.headers[:MAX_HEADERS]))
        header_count, size = len(record.headers), content_size(record)
        if sizes is not None:
            key, value = _before_cut(key, sizes.key), _before_cut(value, sizes.value)
            header_count = sizes.headers
            size += sizes.key - len(record.key or b"") + sizes.value - len(record.value or b"")
        return encoded(
            {
                "type": "record",
                "partition": record.partition,
                "offset": str(record.offset),
                "timestamp_ms": None if record.timestamp_ms is None else str(record.timestamp_ms),
                "timestamp_type": STAMPS[record.timestamp_kind] if record.timestamp_kind else None,
                "key": fields_of(key),
                "value": fields_of(value),
                "headers": [UNREAD_HEADERS] * record.has_unread_headers
                + [
                    {"name": name, "value": fields_of(show(content, most=MAX_SHOWN_HEADER))}
                    for name, content in headers
                ],
                "more_headers": header_count - len(headers),
                "size": size,
            }
        )


def _has_short_name(header: Header) -> bool:
    return len(header[0]) <= MAX_HEADER_NAME


def encoded(line: Mapping[str, Any]) -> bytes:
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    # A name may contain a lone surrogate, which UTF-8 cannot express.
    return text.encode("utf-8", "replace") + b"\n"


def _before_cut(shown: Shown, size: int) -> Shown:
    return shown if shown.size == size else replace(shown, size=size, is_cut=True)


def error_line(message: str, next_step: str, *, partition: int | None = None) -> bytes:
    return encoded(
        {"type": "error", "partition": partition, "message": message, "next_step": next_step}
    )


def gap_line(
    partition: int, first: int, next_offset: int, reason: str, *, goes_on: int | None = None
) -> bytes:
    """Return a gap; `goes_on` is where the stream continues, unless that is behind the gap."""
    return encoded(
        {
            "type": "gap",
            "partition": partition,
            "from": str(first),
            "to": str(next_offset),
            "next": str(next_offset if goes_on is None else goes_on),
            "records": next_offset - first,
            "reason": reason,
        }
    )


def done_line(verdict: str, sentence: str, next_page: Mapping[str, str] | None) -> bytes:
    return encoded({"type": "done", "verdict": verdict, "sentence": sentence, "next": next_page})


def gap_news_line(gap: Gap) -> bytes:
    """Return a gap that a reading has reported."""
    first, behind = sorted([gap.start, gap.next])
    goes_on = gap.next if gap.reason is GapReason.CUT else None
    return gap_line(gap.place.partition, first, behind, gap.reason.value, goes_on=goes_on)


def progress_line(progress: Progress, *, is_search: bool = False) -> bytes:
    rows = progress.rows.values()
    return encoded(
        {
            "type": "progress",
            "partitions": [
                [row.partition, str(row.position), str(row.end), row.records, row.size]
                for row in rows
                if row.has_moved()
            ],
            "waiting": {row.partition: row.waits for row in rows if row.waits},
            "percent": progress.share if is_search else None,
            "records": progress.records,
            "hits": progress.hits,
            "ms": round(progress.seconds() * 1000),
        }
    )
