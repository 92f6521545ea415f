"""Derives a schema from the columns of a result, and converts its values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.source_settings import Numeric
from connectors.sdk.errors import ConnectorError
from connectors.sdk.plain import to_json
from connectors.sdk.schemas import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, Struct, Type

if TYPE_CHECKING:
    import psycopg

NUMERIC_OID: Final = 1700
# Types with a schema, by PostgreSQL's OID; all others are texts.
SCHEMAS: Final[dict[int, tuple[Type, str | None]]] = {
    16: (Type.BOOLEAN, None),
    17: (Type.BYTES, None),
    20: (Type.INT64, None),
    21: (Type.INT16, None),
    23: (Type.INT32, None),
    700: (Type.FLOAT32, None),
    701: (Type.FLOAT64, None),
    1082: (Type.INT32, DATE),
    1083: (Type.INT32, TIME),
    1114: (Type.INT64, TIMESTAMP),
    1184: (Type.INT64, TIMESTAMP),
}
# Types that the client would convert to its own classes; we keep PostgreSQL's text.
TEXTS: Final = (
    *("json", "jsonb", "uuid", "interval", "timetz", "inet", "cidr"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange"),
    *("tsmultirange", "tstzmultirange"),
)
# The digits that fit into each integer type.
INTEGERS: Final = ((2, Type.INT8), (4, Type.INT16), (9, Type.INT32), (18, Type.INT64))
DOUBLE_DIGITS: Final = 18

Take = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The schema of rows, with a conversion for each cell."""

    schema: Schema
    takes: tuple[Take, ...]

    def struct(self, cells: Sequence[Any]) -> Struct:
        values = {
            field.name: None if cell is None else take(cell)
            for field, take, cell in zip(self.schema.fields, self.takes, cells, strict=False)
        }
        return Struct(self.schema, values)


def layout(
    name: str, columns: Sequence["psycopg.Column"], required: frozenset[str], numeric: Numeric
) -> Layout:
    fields, takes = [], []
    for column in columns:
        type_, logical, parameters, take = _kind(column, numeric)
        schema = Schema(
            type=type_,
            name=logical,
            parameters=parameters,
            is_optional=column.name not in required,
        )
        fields.append(Field(name=column.name, schema=schema))
        takes.append(take)
    schema = Schema(type=Type.STRUCT, name=name, fields=tuple(fields))
    return Layout(schema=schema, takes=tuple(takes))


def use_texts(connection: "psycopg.Connection[Any]") -> None:
    """Make a connection return values without a schema type as texts."""
    from psycopg.types.string import TextLoader  # noqa: PLC0415 - only tasks need it

    for name in TEXTS:
        connection.adapters.register_loader(name, TextLoader)


def _kind(
    column: "psycopg.Column", numeric: Numeric
) -> tuple[Type, str | None, dict[str, str], Take]:
    if column.type_code == NUMERIC_OID:
        return _numeric(column, numeric)
    type_, logical = SCHEMAS.get(column.type_code, (Type.STRING, None))
    if logical == TIMESTAMP:
        return type_, logical, {}, _utc
    return type_, logical, {}, _text if type_ is Type.STRING else _same


def _numeric(
    column: "psycopg.Column", numeric: Numeric
) -> tuple[Type, str | None, dict[str, str], Take]:
    precision, scale = column.precision, column.scale
    if precision is None or scale is None:
        return Type.STRING, None, {}, _text
    if scale == 0 and numeric is not Numeric.NONE:
        for digits, type_ in INTEGERS:
            if precision <= digits:
                return type_, None, {}, _whole
    is_eager = numeric is Numeric.BEST_FIT_EAGER_DOUBLE
    fits = numeric is Numeric.BEST_FIT and precision <= DOUBLE_DIGITS
    if scale > 0 and (is_eager or fits):
        return Type.FLOAT64, None, {}, float
    return Type.BYTES, DECIMAL, {"scale": str(scale)}, _finite


def _same(value: Any) -> Any:
    return value


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return to_json(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _whole(value: Decimal) -> int:
    return int(_finite(value))


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ConnectorError(f"the number {value} has no place in a decimal: exclude it by a query")
    return value
