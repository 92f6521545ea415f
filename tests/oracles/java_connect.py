"""Kafka Connect's own converters, transforms and predicates, driven from Python.

Values of Java lose their width when Python holds them, so they stay inside of records: a struct or
map with one field is made the value by Java's ExtractField, and made a struct or map again by its
HoistField before it is told as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError

from tests.oracles.java import gateway, java_class

NAME: Final = "Kafka Connect (Java)"
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
# Stands for what holds bytes, of which Java tells an address.
BYTES: Final = "bytes"
# The field in which a value travels.
FIELD: Final = "it"
# Records of both sides lie here.
PARTITION: Final = 3
OFFSET: Final = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A record, or what became of it, as JSON: what both sides are compared by."""

    topic: str
    key: Any
    value: Any
    # Names, and values as texts, with their schemas as JSON.
    headers: tuple[tuple[str, str, Any], ...] = ()


class Refused(Exception):
    """Java refused; the text is its class and message."""


def configured(class_name: str, config: Mapping[str, str]) -> Any:
    """Return a new object of a class, configured. Raises Refused."""
    made = java_class(class_name)()
    _call(lambda: made.configure(dict(config)))
    return made


def converter(class_name: str, config: Mapping[str, str], *, is_key: bool = False) -> Any:
    made = java_class(class_name)()
    _call(lambda: made.configure(dict(config), is_key))
    return made


def keys_of(class_name: str) -> list[dict[str, Any]]:
    """Return the keys of a class in the order of their definition."""
    found = []
    for key in java_class(class_name)().config().configKeys().values():
        default = get_field(key, "defaultValue")
        is_list = hasattr(default, "toArray")
        found.append(
            {
                "name": get_field(key, "name"),
                "kind": get_field(key, "type").name(),
                "is_required": not key.hasDefault(),
                "default": (list(default) if is_list else default) if key.hasDefault() else None,
                "importance": get_field(key, "importance").name(),
                "group": get_field(key, "group"),
                "width": get_field(key, "width").name(),
                "display_name": get_field(key, "displayName"),
                "dependents": list(get_field(key, "dependents")),
            }
        )
    return found


def errors_of(class_name: str, config: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what `validate` finds wrong, by key."""
    values = java_class(class_name)().config().validate(dict(config))
    told = {value.name(): list(value.errorMessages()) for value in values}
    return {name: messages for name, messages in told.items() if messages}


def transformed(transform: Any, told: Told) -> Told | None:
    """Return what a transform makes of a record; None where it leaves it out. Raises Refused."""
    return _call(lambda: _transformed(transform, told))


def tested(predicate: Any, told: Told) -> bool:
    return _call(lambda: bool(predicate.test(record(told))))


def _transformed(transform: Any, told: Told) -> Told | None:
    result = transform.apply(record(told))
    if result is None:
        return None
    sides = {}
    for side, schema, value in (
        ("Key", "keySchema", "key"),
        ("Value", "valueSchema", "value"),
    ):
        hoisted = _step(f"HoistField${side}").apply(result)
        sides[side] = _json_of(getattr(hoisted, schema)(), getattr(hoisted, value)())
    return Told(
        topic=result.topic(),
        key=sides["Key"],
        value=sides["Value"],
        headers=tuple(_header(header) for header in result.headers().iterator()),
    )


def record(told: Told) -> Any:
    """Make Java's record of messages whose values travel in a field; None stands for a null."""
    headers = java_class("org.apache.kafka.connect.header.ConnectHeaders")()
    for name, text, _ in told.headers:
        headers.addString(name, text)
    made = java_class("org.apache.kafka.connect.sink.SinkRecord")(
        told.topic,
        PARTITION,
        *_read(told.key),
        *_read(told.value),
        OFFSET,
        TIMESTAMP,
        java_class("org.apache.kafka.common.record.TimestampType").CREATE_TIME,
        headers,
    )
    for side, message in (("Key", told.key), ("Value", told.value)):
        if message is not None:
            made = _step(f"ExtractField${side}").apply(made)
    return made


def has_schema(message: Any) -> bool:
    return message.keys() == {"schema", "payload"}


def _read(message: Any) -> tuple[Any, Any]:
    if message is None:
        return None, None
    read = _json(has_schema(message)).toConnectData("t", _bytes(message))
    return read.schema(), read.value()


TIMESTAMP: Final = 1_700_000_000_123


@cache
def _json(has_schemas: bool) -> Any:
    config = {"schemas.enable": str(has_schemas).lower(), "replace.null.with.default": "false"}
    return converter(JSON, config)


@cache
def _step(name: str) -> Any:
    config = {"field": FIELD}
    if name.startswith("Extract"):
        config["replace.null.with.default"] = "false"
    return configured(f"{TRANSFORMS}.{name}", config)


def _json_of(schema: Any, value: Any) -> Any:
    written = _json(schema is not None).fromConnectData("t", schema, value)
    return None if written is None else json.loads(written)


def _header(header: Any) -> tuple[str, str, Any]:
    schema = header.schema()
    written = None if schema is None else json.loads(_json(True).asJsonSchema(schema).toString())
    return header.key(), _value_text(header), written


def _value_text(header: Any) -> str:
    text = str(header.toString().partition("value=")[2].rpartition(", schema=")[0])
    return BYTES if "[B@" in text else text


def _bytes(told: Any) -> bytes:
    return json.dumps(told).encode()


def _call(action: Any) -> Any:
    try:
        return action()
    except Py4JJavaError as error:
        raise Refused(str(error.java_exception.toString())) from error


def parsed_text(text: str) -> tuple[str, str | None, str] | None:
    """Return what Java reads out of the text of a header: type, name, and value as text."""
    return _call(lambda: _parsed_text(text))


def _parsed_text(text: str) -> tuple[str, str | None, str] | None:
    reader = java_class("org.apache.kafka.connect.storage.SimpleHeaderConverter")()
    found = reader.toConnectHeader("t", "h", text.encode())
    if found is None or found.schema() is None:
        return None
    headers = java_class("org.apache.kafka.connect.header.ConnectHeaders")()
    headers.add("h", found)
    schema = found.schema()
    return schema.type().getName(), schema.name(), _value_text(headers.lastWithName("h"))


def rewritten(reader: Any, writer: Any, message: Any) -> bytes | None:
    """Return the bytes of a message that one converter read and another one wrote."""

    def rewrite() -> bytes | None:
        read = reader.toConnectData("t", _bytes(message))
        return writer.fromConnectData("t", read.schema(), read.value())

    return _call(rewrite)


def read_text(reader: Any, payload: bytes | None) -> str:
    """Return what a converter reads, as Java tells it: schema and value."""
    return _call(lambda: reader.toConnectData("t", payload).toString())


def use_utc() -> None:
    """Let Java write dates of headers in UTC, whatever the host's zone is."""
    zones = gateway().jvm.java.util.TimeZone
    zones.setDefault(zones.getTimeZone("UTC"))
