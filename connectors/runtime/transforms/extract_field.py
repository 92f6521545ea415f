"""ExtractField: replaces a value by one of its fields."""

from collections.abc import Mapping
from typing import Any, Final

from connectors.runtime.transforms.field_paths import SYNTAX, SYNTAX_KEY, path_of, unknown
from connectors.runtime.transforms.sides import (
    FILLS_KEY,
    Apply,
    Side,
    fills_of,
    key_of,
    map_of,
    struct_of,
)
from connectors.sdk.configs import Definition, Kind
from connectors.sdk.records import Record

KEYS: Final = Definition(
    (key_of("field", Kind.STRING, "The field to extract."), FILLS_KEY, SYNTAX_KEY)
)
_PURPOSE: Final = "field extraction"


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    text: str = parsed["field"]
    path = path_of(text, parsed[SYNTAX])
    fills = fills_of(parsed)

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if schema is None:
            found = None if value is None else path.value_in_map(map_of(value, _PURPOSE))
            return side.write(record, None, found)
        if value is not None:
            struct_of(value, _PURPOSE)
        field = path.field_of(schema)
        if field is None:
            raise unknown(text)
        found = None if value is None else path.value_in_struct(value, fills=fills)
        return side.write(record, field.schema, found)

    return apply
