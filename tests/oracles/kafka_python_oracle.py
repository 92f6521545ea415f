"""kafka-python as an oracle: the client's own message classes, driven by Kafka's definitions.

It knows what a client sends and reads; brokers' and share groups' messages it does not have.
"""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from brokers.protocol.messages.api_versions import ApiVersionsResponse
from brokers.protocol.schema import Field, Kind, Message
from tests.oracles.strategies import M, canonical

NAME = "kafka-python"

_NO_BITS = {31}  # the lowest number, by which a broker says that nobody asked
_MODULES = ("admin", "consumer", "metadata", "producer", "sasl")


def covers(message: type[Message], version: int) -> bool:
    found = message_class(message)
    return found is not None and version <= found.max_version


@cache
def message_class(message: type[Message]) -> Any:
    for name in _MODULES:
        module = importlib.import_module(f"kafka.protocol.{name}")
        if hasattr(module, message.__name__):
            return getattr(module, message.__name__)
    return None


def fitted(value: M, version: int) -> M:
    """Leave out what the client reads in a way of its own.

    It takes every answer to ApiVersions that tells an error for version 0, and it writes a tagged
    structure even where that is equal to its default.
    """
    if isinstance(value, ApiVersionsResponse):
        value = value.copy()
        value.error_code = 0
    return canonical(value, version)


def build(value: Message, version: int) -> Any:
    found = message_class(type(value))
    return _built(value, version, found, found.fields)


def _built(value: Message, version: int, data_class: Any, theirs: Mapping[str, Any]) -> Any:
    values = {}
    for field in value.FIELDS:
        found = getattr(value, field.name)
        if not field.is_in(version) or (field.tag is not None and found == field.default):
            continue
        # The client's patches shorten these names and turn the number into a set of bits.
        short = field.name.removeprefix("topic_").removeprefix("cluster_")
        name = field.name if field.name in theirs else short
        values[name] = _translated(field, found, version, theirs[name])
    return data_class(version=version, **values)


def _translated(field: Field, found: Any, version: int, theirs: Any) -> Any:
    if found is None:
        return None
    if isinstance(field.element, type):
        if field.kind is Kind.ARRAY:
            inner = theirs.array_of
            return [_built(item, version, inner.data_class, inner.fields) for item in found]
        return _built(found, version, theirs.data_class, theirs.fields)
    if field.kind is Kind.ARRAY:
        return [_richer(field.element, item, theirs.array_of) for item in found]
    return _richer(field.kind, found, theirs)


def _richer(kind: Any, value: Any, theirs: Any) -> Any:
    if theirs.type_str == "bitfield":
        bits = {bit for bit in range(32) if value >> bit & 1}
        return None if bits == _NO_BITS else bits
    if kind is Kind.UUID:
        return UUID(bytes=value) if value != bytes(16) else None
    if kind is Kind.RECORDS:
        return bytes(value)
    return value


def encode(built: Any, version: int) -> bytes:
    return bytes(built.encode(version=version))


def decode(message: type[Message], version: int, wire: bytes) -> Any:
    return message_class(message).decode(wire, version=version)
