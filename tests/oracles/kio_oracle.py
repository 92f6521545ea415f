"""kio as an oracle: generated dataclasses for every message and version.

Only for bytes that we made ourselves: kio's parser allocates whatever a count declares, and a
hostile one aborts the process.
"""

import datetime
import io
from dataclasses import fields
from functools import cache
from typing import Any
from uuid import UUID

import kio.index
import kio.serial
from kio.schema.errors import ErrorCode
from kio.serial.readers import tz_aware_from_i64

from brokers.protocol.schema import Field, Kind, Message
from tests.oracles.strategies import M, replaced

NAME = "kio"

# Beyond this kio's datetime has no year, and its timedelta of 64 bits no exact float.
LAST_TIMESTAMP_MS = 253_402_300_799_999
LONGEST_DURATION_MS = 1 << 40


def covers(message: type[Message], version: int) -> bool:
    try:
        entity_type(message, version)
    except (kio.index.UnknownAPIKey, kio.index.UnknownEntity):
        return False
    return True


@cache
def entity_type(message: type[Message], version: int) -> Any:
    assert message.KEY is not None
    is_request = message.__name__.endswith("Request")
    load = kio.index.load_request_schema if is_request else kio.index.load_response_schema
    return load(message.KEY, version)


def fitted(value: M, version: int) -> M:
    """Move what kio's richer types cannot hold: unknown errors, instants and spans out of range."""
    kinds = _kinds(type(value), version, entity_type(type(value), version))

    def change(field: Field, found: Any) -> Any:
        match kinds.get(field.name):
            case "error_code":
                return found if found in _ERRORS else found % 100
            case "datetime_i64":
                return abs(found) % LAST_TIMESTAMP_MS
            case "timedelta_i64":
                return found % LONGEST_DURATION_MS
        return found

    return replaced(value, version, change)


_ERRORS = frozenset(code.value for code in ErrorCode)


@cache
def _kinds(message: type[Message], version: int, entity: Any) -> dict[str, str]:
    """Map the names of fields, of the message or within it, to kio's richer types."""
    kinds = {}
    for field in message.FIELDS:
        if field.is_in(version):
            theirs = _counterpart(field, entity)
            if isinstance(field.element, type):
                kinds.update(_kinds(field.element, version, _inner(theirs)))
            else:
                kinds[field.name] = theirs.metadata["kafka_type"]
    return kinds


def _counterpart(field: Field, entity: Any) -> Any:
    """Find kio's field: its name leaves the unit out where the type says it."""
    theirs = {each.name: each for each in fields(entity)}
    return theirs.get(field.name) or theirs[field.name.removesuffix("_ms")]


def _inner(theirs: Any) -> Any:
    """Find the class inside `X`, `X | None`, `tuple[X, ...]` or `tuple[X, ...] | None`."""
    found = theirs.type
    while hasattr(found, "__args__"):
        found = next(each for each in found.__args__ if each is not type(None))
    return found


def build(value: Message, version: int) -> Any:
    return _built(value, version, entity_type(type(value), version))


def _built(value: Message, version: int, entity: Any) -> Any:
    values = {}
    for field in value.FIELDS:
        found = getattr(value, field.name)
        if not field.is_in(version) or (field.tag is not None and found == field.default):
            continue  # kio's own default stands for an absent tag
        theirs = _counterpart(field, entity)
        values[theirs.name] = _translated(field, found, version, theirs)
    return entity(**values)


def _translated(field: Field, found: Any, version: int, theirs: Any) -> Any:
    if found is None:
        return None
    if isinstance(field.element, type):
        inner = _inner(theirs)
        if field.kind is Kind.ARRAY:
            return tuple(_built(item, version, inner) for item in found)
        return _built(found, version, inner)
    kind = theirs.metadata["kafka_type"]
    if field.kind is Kind.ARRAY:
        return tuple(_richer(kind, item) for item in found)
    return _richer(kind, found)


def _richer(kind: str, value: Any) -> Any:
    match kind:
        case "error_code":
            return ErrorCode(value)
        case "uuid":
            return UUID(bytes=value) if value != bytes(16) else None
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return tz_aware_from_i64(value)
        case "records":
            return bytes(value)
    return value


def encode(entity: Any, version: int) -> bytes:
    buffer = io.BytesIO()
    kio.serial.entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def decode(message: type[Message], version: int, wire: bytes) -> Any:
    entity, used = kio.serial.entity_reader(entity_type(message, version))(wire, 0)
    assert used == len(wire)
    return entity
