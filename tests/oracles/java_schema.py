"""What Kafka's generated classes say of their own fields: names, order, tags, nulls, defaults.

Equal bytes cannot show all of that: a null that we never write, a default in a version without the
field, a value that an old version must refuse.
"""

from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import get_field, is_instance_of
from py4j.protocol import Py4JJavaError

from brokers.protocol.schema import Field, Kind, Message
from tests.oracles.java import gateway, java_class
from tests.oracles.java_messages import MESSAGES, camel, encode

SCHEMA = "org.apache.kafka.common.protocol.types.Schema"
REFUSED = "org.apache.kafka.common.errors.UnsupportedVersionException"
TAGGED_FIELDS = "_tagged_fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireField:
    """One field of a schema, or of our table, in the form in which the two are compared."""

    name: str
    tag: int | None
    is_nullable: bool
    inner: "tuple[WireField, ...] | None"


def kafkas_fields(message: type[Message], version: int) -> tuple[WireField, ...]:
    data = java_class(f"{MESSAGES}.{message.__name__}Data")
    return _fields_of(getattr(data, f"SCHEMA_{version}"))


def _fields_of(schema: Any) -> tuple[WireField, ...]:
    plain, tagged = [], []
    for bound in schema.fields():
        field = get_field(bound, "def")
        if get_field(field, "name") == TAGGED_FIELDS:
            found = get_field(field, "type").fields()
            tagged = [_wire_field(found[tag], tag) for tag in sorted(found)]
        else:
            plain.append(_wire_field(field, None))
    return (*plain, *tagged)


def _wire_field(field: Any, tag: int | None) -> WireField:
    kind = get_field(field, "type")
    element = kind.arrayElementType().get() if kind.isArray() else kind
    return WireField(
        name=get_field(field, "name"),
        tag=tag,
        is_nullable=kind.isNullable(),
        inner=_fields_of(element) if is_instance_of(gateway(), element, SCHEMA) else None,
    )


def our_fields(message: type[Message], version: int) -> tuple[WireField, ...]:
    """Give our table in the same form: plain fields first, then optional ones by their tag."""
    present = [field for field in message.FIELDS if field.is_in(version)]
    present.sort(key=lambda field: -1 if field.tag is None else field.tag)
    return tuple(
        WireField(
            name=field.name,
            tag=field.tag,
            is_nullable=field.is_nullable_in(version),
            inner=our_fields(field.element, version) if isinstance(field.element, type) else None,
        )
        for field in present
    )


def kafkas_default(instance: Any, field: Field) -> Any:
    """Read a field of a fresh Java object, in our form of the value."""
    found = getattr(instance, camel(field.name))()
    if found is None:
        return None
    if field.kind is Kind.ARRAY:
        return list(found.toArray())
    if field.kind is Kind.BYTES and not isinstance(found, bytes):
        return bytes(found.array())  # a ByteBuffer, where Kafka's own code reads without a copy
    if field.kind is Kind.UUID:
        return (found.getMostSignificantBits() % 2**64).to_bytes(8, "big") + (
            found.getLeastSignificantBits() % 2**64
        ).to_bytes(8, "big")
    return found


def encoded_or_refused(built: Any, version: int) -> bytes | None:
    """Encode in a version of the caller's choice; None where that version would lose a value."""
    try:
        return encode(built, version)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != REFUSED:
            raise
        return None
