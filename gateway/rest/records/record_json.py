"""Formats a record for programs. Pure.

Data that the requested format cannot express becomes base64, with an `error` field: one unusual
record must not stop a reader.
"""

import base64
import json
import re
from typing import Final

import msgspec

from gateway.kafka.readers.values import Begin, End, Gap
from gateway.kafka.values import Record
from gateway.rest.records.question import Format

NULL: Final = "null"
# In JSON, such characters occur only within strings.
NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


class NotExpressible(Exception):
    """Bytes that a format cannot express; the text says why."""


def record_text(record: Record, form: Format) -> str:
    """Return a record as one line of ASCII JSON."""
    written, problems = data_texts(record, form)
    if record.has_unread_headers:
        problems.append("it has headers, and the name of one is not UTF-8: they are left out")
    headers = [
        {"name": name, "value": None if value is None else base64.b64encode(value).decode()}
        for name, value in record.headers
    ]
    kind = record.timestamp_kind
    return (
        f'{{"topic":{json.dumps(record.topic)},"partition":{record.partition}'
        f',"offset":{record.offset},"timestamp":{json.dumps(record.timestamp_ms)}'
        f',"timestamp_type":{json.dumps(kind and kind.value)}'
        f',"key":{written["key"]},"value":{written["value"]},"headers":{dumped(headers)}'
        + (f',"error":{json.dumps("; ".join(problems))}' if problems else "")
        + "}"
    )


def data_texts(record: Record, form: Format) -> tuple[dict[str, str], list[str]]:
    """Return key and value as JSON, and the errors of the format."""
    problems = []
    written = {}
    for name, data in (("key", record.key), ("value", record.value)):
        try:
            written[name] = NULL if data is None else _text(data, form)
        except NotExpressible as why:
            assert data is not None
            written[name] = _base64(data)
            problems.append(f"{name} {why}, it is given as base64")
    return written, problems


def gap_value(gap: Gap) -> dict[str, object]:
    return {
        "topic": gap.place.topic,
        "partition": gap.place.partition,
        "from": gap.start,
        "to": gap.next,
        "reason": gap.reason.name.lower(),
        "message": gap.reason.value,
    }


def begin_value(begin: Begin) -> dict[str, object]:
    place = begin.place
    value = {"topic": place.topic, "partition": place.partition, "offset": begin.offset}
    return {"partitions": [value]}


def end_value(end: End) -> dict[str, object]:
    return {
        "topic": end.place.topic,
        "partition": end.place.partition,
        "reason": end.name,
        "message": end.message,
    }


def dumped(value: object) -> str:
    """Return one line of ASCII JSON: a lone surrogate has no other representation."""
    return json.dumps(value, separators=(",", ":"))


def _text(data: bytes, form: Format) -> str:
    match form:
        case Format.BINARY:
            return _base64(data)
        case Format.STRING:
            try:
                return json.dumps(data.decode("utf-8"))
            except UnicodeDecodeError:
                raise NotExpressible("is not UTF-8") from None
        case Format.JSON:
            try:
                # Remove whitespace, because JSON over several lines is not one line. Numbers keep
                # their text: a double would round them.
                line = msgspec.json.format(data.decode("utf-8"), indent=-1)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                raise NotExpressible("is not JSON") from None
            return line if line.isascii() else NOT_ASCII.sub(_escaped, line)


def _escaped(found: "re.Match[str]") -> str:
    return json.dumps(found[0])[1:-1]


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'
