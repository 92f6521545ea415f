"""Kafka's own generated message classes as an oracle, by way of their JSON converters.

A value goes in as JSON and comes out as bytes; our bytes go in and must equal the object that the
JSON made. Compared within Java, where record data has its own equality.
"""

import base64
import json
from functools import cache
from typing import Any

from brokers.protocol.schema import Field, Kind, Message
from tests.oracles.java import java_class
from tests.oracles.strategies import M, canonical

NAME = "Kafka (Java)"

MESSAGES = "org.apache.kafka.common.message"
_PROTOCOL = "org.apache.kafka.common.protocol"


def covers(message: type[Message], version: int) -> bool:
    data = java_class(f"{MESSAGES}.{message.__name__}Data")
    return data.LOWEST_SUPPORTED_VERSION <= version <= data.HIGHEST_SUPPORTED_VERSION


def fitted(value: M, version: int) -> M:
    return canonical(value, version)


def build(value: Message, version: int) -> Any:
    """Make Kafka's object from the value's JSON."""
    text = json.dumps(as_json(value, version))
    node = _mapper().readTree(text)
    return _converter(type(value)).read(node, _short(version))


def encode(built: Any, version: int) -> bytes:
    accessor = java_class(f"{_PROTOCOL}.MessageUtil").toByteBufferAccessor(built, _short(version))
    return bytes(accessor.buffer().array())


def decode(message: type[Message], version: int, wire: bytes) -> Any:
    buffer = java_class("java.nio.ByteBuffer").wrap(wire)
    accessor = java_class(f"{_PROTOCOL}.ByteBufferAccessor")(buffer)
    data = java_class(f"{MESSAGES}.{message.__name__}Data")(accessor, _short(version))
    assert not buffer.hasRemaining()
    return data


@cache
def _mapper() -> Any:
    return java_class("com.fasterxml.jackson.databind.ObjectMapper")()


@cache
def _converter(message: type[Message]) -> Any:
    return java_class(f"{MESSAGES}.{message.__name__}DataJsonConverter")


@cache
def _short(version: int) -> Any:
    # py4j sends an int, and Kafka's methods take a short.
    return java_class("java.lang.Short").valueOf(str(version))


# -- JSON ----------------------------------------------------------------------------------------


def as_json(value: Message, version: int) -> dict[str, Any]:
    """Write a value the way Kafka's converters read it."""
    found = {}
    for field in value.FIELDS:
        item = getattr(value, field.name)
        if field.is_in(version) and not (field.tag is not None and item == field.default):
            found[camel(field.name)] = _field_json(field, item, version)
    return found


def _field_json(field: Field, item: Any, version: int) -> Any:
    if item is None:
        return None
    if field.kind is Kind.ARRAY:
        return [_element_json(field.element, each, version) for each in item]
    return _element_json(field.element or field.kind, item, version)


def _element_json(kind: Any, item: Any, version: int) -> Any:
    if isinstance(kind, type):
        return as_json(item, version)
    if kind is Kind.UUID:
        return base64.urlsafe_b64encode(item).decode().rstrip("=")
    if kind in (Kind.BYTES, Kind.RECORDS):
        return base64.b64encode(item).decode()
    return item


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
