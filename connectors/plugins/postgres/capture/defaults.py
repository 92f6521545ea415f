"""Column defaults as schema defaults.

PostgreSQL stores an expression. A literal becomes its value. A function call, whose value is not
known in advance, becomes a zero, as in Debezium. Any other expression is left out.
"""

import re
from dataclasses import replace
from typing import Final

from connectors.plugins.postgres.capture.kinds import Kind
from connectors.plugins.postgres.capture.relations import Column
from connectors.sdk.schemas import Type

_LITERAL: Final = re.compile(r"(E|B)?'((?:[^']|'')*)'(?:::[\w ().,\"\[\]]+)?", re.DOTALL)
_BARE: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false")
_CALL: Final = re.compile(r"[A-Za-z_][\w.]*\(.*\)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_BOOLEANS: Final = {"true": "t", "false": "f"}
# Zeros as PostgreSQL writes them, by type. Types without a row have no schema default.
ZEROS: Final[dict[str, str | None]] = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric"), "0"),
    **dict.fromkeys(("text", "varchar", "bpchar", "xml"), ""),
    **dict.fromkeys(("json", "jsonb"), "{}"),
    "bool": "f",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "date": "1970-01-01",
    "time": "00:00:00",
    "interval": "00:00:00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    # Types whose defaults are used only if they are literals.
    **dict.fromkeys(("bit", "varbit")),
}
# Types for which any other expression becomes a zero too, such as CURRENT_TIMESTAMP.
_LENIENT: Final = frozenset(("bool", "timestamp", "timestamptz", "date", "time", "interval"))


def with_default(kind: Kind, column: Column) -> Kind:
    """Return the kind with the default of its column, if a schema can express it."""
    told = None if column.default is None else _cell(column, column.default)
    # A number without a scale is a struct, which has no default.
    if told is None or kind.schema.type is Type.STRUCT:
        return kind
    try:
        value = kind.value(told)
    except ValueError:
        return kind
    schema = replace(kind.schema, default=value, has_default=True)
    return replace(kind, schema=schema, fallback=None if column.is_optional else value)


def _cell(column: Column, expression: str) -> str | None:
    of = column.type
    if of.labels:
        literal = _LITERAL.fullmatch(expression)
        return None if literal is None else _text(*literal.groups())
    if of.name not in ZEROS or not of.is_built_in:
        return None
    if literal := _LITERAL.fullmatch(expression):
        return _text(*literal.groups())
    if _BARE.fullmatch(expression):
        return _BOOLEANS.get(expression, expression)
    is_null = expression.startswith("NULL::")
    if not is_null and (_CALL.fullmatch(expression) or of.name in _LENIENT):
        return ZEROS[of.name]
    return None


def _text(style: str | None, quoted: str) -> str:
    text = quoted.replace("''", "'")
    if style != "E":
        return text
    return _ESCAPED.sub(lambda found: _CONTROLS.get(found[1], found[1]), text)
