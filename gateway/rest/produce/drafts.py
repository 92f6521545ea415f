"""Parses and checks the records that version 3 sends. Pure."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec

from gateway.kafka.values import NewRecord
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.formats import (
    SHOWN,
    Format,
    binary,
    decoded,
    format_of,
    milliseconds,
    refused,
    whole,
    why_no_json,
)
from gateway.rest.produce.splitter import Malformed

T = TypeVar("T")
# More headers than applications use; each is an object in memory.
MAX_HEADERS: Final = 1_000
MAX_PARTITION: Final = 2**31 - 1


class Datum(msgspec.Struct, forbid_unknown_fields=True):
    """A key or a value. Schema fields are accepted, but useless without a registry."""

    data: msgspec.Raw = msgspec.Raw()
    type: str | None = None
    subject: str | None = None
    subject_name_strategy: str | None = None
    schema_id: int | str | None = None
    schema_version: int | str | None = None
    schema: str | None = None


class HeaderIn(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str | None = None


class RecordIn(msgspec.Struct, forbid_unknown_fields=True):
    partition_id: int | str | None = None
    headers: Annotated[list[HeaderIn], msgspec.Meta(max_length=MAX_HEADERS)] | None = None
    key: Datum | None = None
    value: Datum | None = None
    timestamp: str | None = None


class EntryIn(RecordIn, forbid_unknown_fields=True, kw_only=True):
    """A record of a batch, with its id."""

    id: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to send, and the parts that its receipt repeats."""

    record: NewRecord
    key: tuple[Format, int] | None
    value: tuple[Format, int] | None


RECORDS: Final = msgspec.json.Decoder(RecordIn)
ENTRIES: Final = msgspec.json.Decoder(EntryIn)


def drafted(text: bytes) -> Draft:
    """Parse one object. Raises Malformed if it is not JSON, ApiError if it is no valid record."""
    return draft_of(parsed(RECORDS, text))


def entry_drafted(text: bytes) -> Draft:
    return draft_of(parsed(ENTRIES, text))


def parsed(decoder: msgspec.json.Decoder[T], text: bytes) -> T:
    try:
        if not text.isascii():
            # The decoder does not validate the text inside raw values.
            text.decode()
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise refused(f"{error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"a record is not JSON in UTF-8: {why_no_json(text, error)}") from None


def draft_of(given: RecordIn) -> Draft:
    key_format, key = _datum(given.key, "key")
    value_format, value = _datum(given.value, "value")
    record = NewRecord(
        value=value,
        key=key,
        headers=tuple((header.name, _header(header)) for header in given.headers or ()),
        partition=partition_of(given.partition_id, "partition_id"),
        timestamp_ms=None if given.timestamp is None else milliseconds(given.timestamp),
    )
    return Draft(
        record,
        None if key_format is None else (key_format, len(key or b"")),
        None if value_format is None else (value_format, len(value or b"")),
    )


def partition_of(given: int | str | None, field: str) -> int | None:
    """Return the number of a partition, which may be written as text."""
    found = whole(given, MAX_PARTITION)
    if found is None and given is not None:
        raise refused(f"{field} is {given!r:.{SHOWN}}: give a number from 0 to {MAX_PARTITION}")
    return found


def _datum(given: Datum | None, field: str) -> tuple[Format | None, bytes | None]:
    if given is None:
        return None, None
    needs_registry = given.schema_id is not None or given.schema_version is not None
    if needs_registry or given.schema is not None or given.subject is not None:
        raise ApiError(
            Code.BAD_SCHEMA,
            f"{field} names a schema, and this gateway has no schema registry: "
            "send BINARY, STRING or JSON without one",
        )
    form = format_of(given.type, field)
    return form, decoded(given.data, form, f"{field}.data")


def _header(given: HeaderIn) -> bytes | None:
    return None if given.value is None else binary(given.value, f"header {given.name[:80]!r}")
