"""Applies transforms to the key or the value of a record: `$Key` and `$Value` in Java's names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final, TypeAlias

from connectors.sdk.checks import Message
from connectors.sdk.configs import REQUIRED, Check, Importance, Key, Kind
from connectors.sdk.errors import DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import Field, Schema, Struct

# Returns a record, possibly the same, or None to drop it.
Apply: TypeAlias = Callable[[Record], Record | None]


class Side(Enum):
    KEY = "Key"
    VALUE = "Value"

    def read(self, record: Record) -> tuple[Schema | None, Any]:
        if self is Side.KEY:
            return record.key_schema, record.key
        return record.value_schema, record.value

    def write(self, record: Record, schema: Schema | None, value: Any) -> Record:
        if self is Side.KEY:
            return replace(record, key_schema=schema, key=value)
        return replace(record, value_schema=schema, value=value)


def map_of(value: Any, purpose: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(
            f"Only Map objects supported in absence of schema for [{purpose}], found: "
            f"{_kind_of(value)}"
        )
    return value


def struct_of(value: Any, purpose: str) -> Struct:
    if not isinstance(value, Struct):
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {_kind_of(value)}")
    return value


def _kind_of(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def copied(struct: Struct, fields: Iterable[Field], *, fills: bool) -> dict[str, Any]:
    """Return the values of some fields; with `fills`, a null becomes the default."""
    values = struct.values
    if not fills:
        return {field.name: values.get(field.name) for field in fields}
    return {
        field.name: field.schema.default if (value := values.get(field.name)) is None else value
        for field in fields
    }


def key_of(
    name: str,
    kind: Kind,
    doc: str,
    *,
    importance: Importance = Importance.MEDIUM,
    default: Any = REQUIRED,
    check: Check | None = None,
) -> Key:
    """Return a key of a transform: without a group, displayed by its own name."""
    return Key(
        name=name,
        kind=kind,
        default=default,
        importance=importance,
        doc=doc,
        check=check,
        display_name=name,
    )


FILLS: Final = "replace.null.with.default"
FILLS_KEY: Final = key_of(
    FILLS,
    Kind.BOOLEAN,
    "Whether a null becomes the default of its schema, where it has one.",
    default=True,
)


def fills_of(parsed: Mapping[str, Any]) -> bool:
    return bool(parsed[FILLS])


def names(key: str, *, may_be_missing: bool = False) -> Check:
    """Return a check of a list of names: none empty, no duplicates."""

    def check_names(value: Any) -> str | None:
        if not value:
            wrong = "must not be empty. Valid values include: any non-empty value"
            if value is None:
                wrong = "values must not be null."
            return None if may_be_missing else Message(f"Configuration '{key}' {wrong}")
        if len(set(value)) < len(value):
            return Message(f"Configuration '{key}' values must not be duplicated.")
        if "" in value:
            return Message(f"Configuration '{key}' values must not be empty.")
        return None

    return check_names
