"""Reads and writes schemas as JSON, the part of a message that describes its payload.

Reading validates untrusted input; nothing is loaded by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from connectors.runtime.converters.json_reader import Reader
from connectors.runtime.converters.json_writer import quoted
from connectors.runtime.values.structs import LOGICAL, check, unique
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import DECIMAL, EMPTY, MAX_DEPTH, Field, Schema, Type

_TYPES: Final = {kind.value: kind for kind in Type}
# The scale of decimals; Java's limit is that of an int, but values have at most this many digits.
_MAX_SCALE: Final = 1000


@dataclass(frozen=True, slots=True)
class SchemaReader:
    """Makes schemas from parsed JSON; a default is read by the same rules as a value."""

    make_reader: Callable[[Schema], Reader]

    def read(self, told: Any, depth: int = MAX_DEPTH) -> Schema | None:
        """Return a schema, or None for null; DataError names the invalid part."""
        if told is None:
            return None
        if depth == 0:
            raise DataError(f"the schema is nested deeper than {MAX_DEPTH} levels")
        word = told.get("type") if isinstance(told, dict) else None
        if not isinstance(word, str):
            raise DataError("Schema must contain 'type' field")
        kind = _TYPES.get(word)
        if kind is None:
            raise DataError(f"Unknown schema type: {word[:100]}")
        version = told.get("version")
        schema = Schema(
            type=kind,
            is_optional=told.get("optional") is True,
            name=_text(told.get("name")),
            version=version if type(version) is int else None,
            doc=_text(told.get("doc")),
            parameters=_parameters(told.get("parameters")),
            fields=self._fields(told, depth) if kind is Type.STRUCT else (),
            key_schema=self._inner(told, "keys", depth) if kind is Type.MAP else None,
            value_schema=self._inner(told, _ITEMS[kind], depth) if kind in _ITEMS else None,
        )
        _check_logical(schema)
        return self._with_default(schema, told)

    def _inner(self, told: Mapping[str, Any], name: str, depth: int) -> Schema:
        inner = self.read(told.get(name), depth - 1)
        if inner is None:
            raise DataError(f"the schema of {told['type']} did not specify its {name!r}")
        return inner

    def _fields(self, told: Mapping[str, Any], depth: int) -> tuple[Field, ...]:
        fields = told.get("fields")
        if not isinstance(fields, list):
            raise DataError('Struct schema\'s "fields" argument is not an array.')
        return unique(self._field(field, depth) for field in fields)

    def _field(self, told: Any, depth: int) -> Field:
        name = told.get("field") if isinstance(told, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = self.read(told, depth - 1)
        assert schema is not None, "an object is not a null"
        return Field(name=name, schema=schema)

    def _with_default(self, schema: Schema, told: Mapping[str, Any]) -> Schema:
        if "default" not in told:
            return schema
        default = self.make_reader(schema)(told["default"])
        if default is None:
            return schema
        check(schema, default, what="the default")
        return _with(schema, default)


_ITEMS: Final = {Type.ARRAY: "items", Type.MAP: "values"}


def _with(schema: Schema, default: Any) -> Schema:
    return replace(schema, default=default, has_default=True)


def _text(told: Any) -> str | None:
    return told if isinstance(told, str) else None


def _parameters(told: Any) -> Mapping[str, str]:
    if not isinstance(told, dict):
        return EMPTY
    if not all(isinstance(value, str) for value in told.values()):
        raise DataError("Schema parameters must have string values.")
    return told


def _check_logical(schema: Schema) -> None:
    logical = LOGICAL.get(schema.name or "")
    if logical is not None and logical[0] is not schema.type:
        raise DataError(
            f"a schema named {schema.name} is of {logical[0].value}, not {schema.type.value}"
        )
    if schema.name == DECIMAL:
        scale_of(schema)


def scale_of(schema: Schema) -> int:
    """Return the scale of a decimal's schema."""
    text = schema.parameters.get("scale", "")
    try:
        scale = int(text)
    except ValueError:
        scale = _MAX_SCALE + 1
    if abs(scale) > _MAX_SCALE:
        raise DataError(
            f"Invalid Decimal schema: its parameter scale is {text[:20]!r}, and must be a whole "
            f"number of at most {_MAX_SCALE}"
        )
    return scale


def schema_text(schema: Schema | None, write: Callable[[Schema, Any], str]) -> str:
    """Write a schema as JSON; `write` writes its default."""
    return "null" if schema is None else f"{{{','.join(_members(schema, write, MAX_DEPTH))}}}"


def _members(schema: Schema, write: Callable[[Schema, Any], str], depth: int) -> list[str]:
    if depth == 0:
        raise DataError(f"the schema is nested deeper than {MAX_DEPTH} levels")

    def inner(one: Schema | None) -> str:
        return "null" if one is None else f"{{{','.join(_members(one, write, depth - 1))}}}"

    members = [f'"type":"{schema.type.value}"']
    if schema.type is Type.MAP:
        members.append(f'"keys":{inner(schema.key_schema)}')
    if schema.type in _ITEMS:
        members.append(f'"{_ITEMS[schema.type]}":{inner(schema.value_schema)}')
    if schema.type is Type.STRUCT:
        fields = (
            f"{{{','.join((*_members(field.schema, write, depth - 1), _named(field)))}}}"
            for field in schema.fields
        )
        members.append(f'"fields":[{",".join(fields)}]')
    members.append(f'"optional":{"true" if schema.is_optional else "false"}')
    if schema.name is not None:
        members.append(f'"name":{quoted(schema.name)}')
    if schema.version is not None:
        members.append(f'"version":{schema.version}')
    if schema.doc is not None:
        members.append(f'"doc":{quoted(schema.doc)}')
    if schema.parameters:
        pairs = (f"{quoted(name)}:{quoted(text)}" for name, text in schema.parameters.items())
        members.append(f'"parameters":{{{",".join(pairs)}}}')
    if schema.default is not None:
        members.append(f'"default":{write(schema, schema.default)}')
    return members


def _named(field: Field) -> str:
    return f'"field":{quoted(field.name)}'
