"""DropHeaders and InsertHeader."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.sides import Apply, key_of, names
from connectors.runtime.values import literals
from connectors.sdk.checks import non_null
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.records import Header, Record

DROP_KEYS: Final = Definition(
    (
        key_of(
            "headers",
            Kind.LIST,
            "The names of the headers to leave out.",
            importance=Importance.HIGH,
            check=names("headers"),
        ),
    )
)
INSERT_KEYS: Final = Definition(
    (
        key_of(
            "header",
            Kind.STRING,
            "The name of the header.",
            importance=Importance.HIGH,
            check=non_null,
        ),
        key_of(
            "value.literal",
            Kind.STRING,
            "Its value: the smallest type that holds it, as 7, 1.5, true, [1,2] or a date.",
            importance=Importance.HIGH,
            check=non_null,
        ),
    )
)


def build_drop(parsed: Mapping[str, Any]) -> Apply:
    dropped = frozenset(parsed["headers"])

    def apply(record: Record) -> Record:
        left = tuple(header for header in record.headers if header.name not in dropped)
        return record if len(left) == len(record.headers) else replace(record, headers=left)

    return apply


def build_insert(parsed: Mapping[str, Any]) -> Apply:
    schema, value = literals.parse(parsed["value.literal"])
    header = Header(name=parsed["header"], value=value, schema=schema)

    def apply(record: Record) -> Record:
        return replace(record, headers=(*record.headers, header))

    return apply
