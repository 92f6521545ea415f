"""Parses and merges the schemas that Spark infers from records.

Pure. Spark gives the schema of all values of a batch as one text, such as
`OBJECT<id: BIGINT, tags: ARRAY<STRING>>`; this module turns it into the DDL that reads them as
columns. A column keeps its first type, so that files of different days fit together.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from connectors.sdk.errors import ConnectorError, DataError

# Limits that only a mistake in the records exceeds.
MAX_DEPTH: Final = 32
MAX_COLUMNS: Final = 2000
TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|[<>:,]|DECIMAL\(\d+,\s*\d+\)|[^\s<>:,`]+)")
# The type of each kind of value. JSON's fractions look like decimals; a value that is always null
# has no type yet; values of changing types are kept as text.
ATOMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BIGINT": "BIGINT",
        "BOOLEAN": "BOOLEAN",
        "DOUBLE": "DOUBLE",
        "FLOAT": "DOUBLE",
        "STRING": "STRING",
        "VARIANT": "STRING",
    }
)
VOID: Final = "VOID"
# The two fields of a value that carries its schema with it.
SCHEMA, PAYLOAD = "schema", "payload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """The type of a column: a word of DDL, an array of another type, or a struct of columns."""

    atom: str = ""
    element: "Type | None" = None
    fields: Mapping[str, "Type"] = field(default_factory=dict)

    @property
    def is_struct(self) -> bool:
        return not self.atom and self.element is None

    def ddl(self) -> str:
        if self.atom:
            return self.atom
        if self.element is not None:
            return f"ARRAY<{self.element.ddl()}>"
        return f"STRUCT<{', '.join(f'{quoted(n)}: {t.ddl()}' for n, t in self.fields.items())}>"


Columns = Mapping[str, Type]


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def columns_ddl(columns: Columns) -> str:
    return ", ".join(f"{quoted(name)} {type_.ddl()}" for name, type_ in columns.items())


def holds_envelopes(columns: Columns) -> bool:
    """Return whether values carry their schema, as Kafka's JsonConverter writes them."""
    return columns.keys() == {SCHEMA, PAYLOAD} and columns[PAYLOAD].is_struct


def parse(text: str) -> Columns:
    """Return the columns of an object type of Spark; DataError for any other type."""
    tokens = TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s+(?=(?:[^`]*`[^`]*`)*[^`]*$)", "", text):
        raise DataError(f"the schema {text[:200]!r} cannot be read: give value.schema")
    reader = _Reader(tokens)
    found = reader.type(0)
    if found is None or not found.is_struct:
        raise DataError(f"the values are not JSON objects, but {text[:200]}: give value.schema")
    return found.fields


def merged(kept: Columns, found: Columns) -> Columns:
    """Return the kept columns, followed by the new ones."""
    columns = {name: _merged_type(type_, found.get(name)) for name, type_ in kept.items()}
    columns |= {name: type_ for name, type_ in found.items() if name not in kept}
    if len(columns) > MAX_COLUMNS:
        raise ConnectorError(
            f"the records have {len(columns)} fields by now, at most {MAX_COLUMNS} become columns:"
            " give value.schema with those that are wanted"
        )
    _require_distinct(columns)
    return columns


def to_json(columns: Columns) -> dict[str, object]:
    return {name: _type_to_json(type_) for name, type_ in columns.items()}


def from_json(told: Mapping[str, object]) -> Columns:
    return {name: _type_from_json(one) for name, one in told.items()}


def _merged_type(kept: Type, found: Type | None) -> Type:
    if found is None:
        return kept
    if kept.is_struct and found.is_struct:
        return Type(fields=merged(kept.fields, found.fields))
    if kept.element is not None and found.element is not None:
        return Type(element=_merged_type(kept.element, found.element))
    return kept


def _require_distinct(columns: Columns) -> None:
    lower: dict[str, str] = {}
    for name in columns:
        other = lower.setdefault(name.lower(), name)
        if other != name:
            raise ConnectorError(
                f"records have the fields {other!r} and {name!r}, which tables cannot "
                "distinguish: give value.schema with one of them"
            )


def _type_to_json(type_: Type) -> object:
    if type_.atom:
        return type_.atom
    if type_.element is not None:
        return [_type_to_json(type_.element)]
    return to_json(type_.fields)


def _type_from_json(told: object) -> Type:
    if isinstance(told, str):
        return Type(atom=told)
    if isinstance(told, list):
        return Type(element=_type_from_json(told[0]))
    assert isinstance(told, Mapping), "a struct is an object"
    return Type(fields=from_json(told))


class _Reader:
    """Reads tokens from the front."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def type(self, depth: int) -> Type | None:
        """Return the next type; None if it is not known yet."""
        word = self._next()
        if depth > MAX_DEPTH:
            return Type(atom="STRING")
        if word == "ARRAY":
            self._expect("<")
            element = self.type(depth + 1)
            self._expect(">")
            return None if element is None else Type(element=element)
        if word == "OBJECT":
            return self._object(depth)
        if word == VOID:
            return None
        return Type(atom=ATOMS.get(word, "DOUBLE" if word.startswith("DECIMAL") else "STRING"))

    def _object(self, depth: int) -> Type | None:
        fields: dict[str, Type] = {}
        self._expect("<")
        while self._peek() != ">":
            name = self._next()
            self._expect(":")
            found = self.type(depth + 1)
            if found is not None:
                fields[_unquoted(name)] = found
            if self._peek() == ",":
                self._next()
        self._expect(">")
        # A struct without a field cannot be written; the outermost one may be of nulls only.
        return Type(fields=fields) if fields or depth == 0 else None

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        found = self._next()
        if found != wanted:
            raise DataError(f"a schema has {found!r} where {wanted!r} belongs: give value.schema")


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
