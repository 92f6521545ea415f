"""Kinds of points, of PostGIS's shapes, and of pgvector's vectors."""

import struct
from collections.abc import Callable, Mapping
from typing import Final

from connectors.plugins.postgres.capture.event_settings import EventSettings
from connectors.plugins.postgres.capture.kinds import Kind
from connectors.sdk.schemas import Field, Schema, Struct, Type

PACKAGE: Final = "io.debezium.data."
WKB: Final = Field(name="wkb", schema=Schema(type=Type.BYTES))
SRID: Final = Field(name="srid", schema=Schema(type=Type.INT32, is_optional=True))
POINT: Final = Schema(
    type=Type.STRUCT,
    name=f"{PACKAGE}geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(
        Field(name="x", schema=Schema(type=Type.FLOAT64)),
        Field(name="y", schema=Schema(type=Type.FLOAT64)),
        Field(name="wkb", schema=Schema(type=Type.BYTES, is_optional=True)),
        SRID,
    ),
)
SPARSE: Final = Schema(
    type=Type.STRUCT,
    name=f"{PACKAGE}SparseDoubleVector",
    version=1,
    doc="Sparse double vector",
    fields=(
        Field(name="dimensions", schema=Schema(type=Type.INT16)),
        Field(
            name="vector",
            schema=Schema(
                type=Type.MAP,
                key_schema=Schema(type=Type.INT16),
                value_schema=Schema(type=Type.FLOAT64),
            ),
        ),
    ),
)
# The limit of the schema.
MOST_DIMENSIONS: Final = 2**15 - 1
# Well-known binary: little endian, the type of a point, two doubles.
WKB_POINT: Final = struct.Struct("<BIdd")
# PostGIS's EWKB flag: an SRID follows the type.
HAS_SRID: Final = 0x20000000
HEADERS: Final = {0: struct.Struct(">II"), 1: struct.Struct("<II")}
# An empty collection of shapes.
EMPTY_WKB: Final = bytes.fromhex("010700000000000000")


def point(_modifier: int, _settings: EventSettings) -> Kind:
    def value(text: str) -> Struct:
        x, _, y = text.removeprefix("(").removesuffix(")").partition(",")
        return _point_at(float(x), float(y))

    return Kind(schema=POINT, value=value, fallback=_point_at(0.0, 0.0))


def _point_at(x: float, y: float) -> Struct:
    return Struct(POINT, {"x": x, "y": y, "wkb": WKB_POINT.pack(1, 1, x, y)})


def _shape(word: str) -> Callable[[int, EventSettings], Kind]:
    schema = Schema(
        type=Type.STRUCT,
        name=f"{PACKAGE}geometry.{word}",
        version=1,
        doc=word,
        fields=(WKB, SRID),
    )

    def value(text: str) -> Struct:
        octets = bytes.fromhex(text)
        return Struct(schema, {"wkb": octets, "srid": _srid(octets)})

    def make(_modifier: int, settings: EventSettings) -> Kind:
        return Kind(
            schema=schema,
            value=value,
            fallback=Struct(schema, {"wkb": EMPTY_WKB, "srid": None}),
            unavailable=Struct(schema, {"wkb": settings.placeholder.encode(), "srid": None}),
        )

    return make


def _srid(octets: bytes) -> int | None:
    """Return the SRID of a shape, if it has one."""
    header = HEADERS.get(octets[0]) if octets else None
    if header is None or len(octets) <= header.size:
        raise ValueError("not a shape in well-known binary")
    kind, srid = header.unpack_from(octets, 1)
    return int(srid) if kind & HAS_SRID else None


def _vector(word: str, type_: Type) -> Callable[[int, EventSettings], Kind]:
    schema = Schema(
        type=Type.ARRAY, name=f"{PACKAGE}{word}", version=1, value_schema=Schema(type=type_)
    )

    def make(_modifier: int, settings: EventSettings) -> Kind:
        return Kind(
            schema=schema,
            value=_numbers,
            fallback=[],
            unavailable=[float(octet) for octet in settings.placeholder.encode()],
        )

    return make


def _numbers(text: str) -> list[float]:
    if text[:1] != "[" or text[-1:] != "]":
        raise ValueError("not a vector: it has no brackets")
    return [float(one) for one in text[1:-1].split(",")] if len(text) > 2 else []


def _sparse_vector(_modifier: int, settings: EventSettings) -> Kind:
    octets = settings.placeholder.encode()
    return Kind(
        schema=SPARSE,
        value=_sparse,
        fallback=Struct(SPARSE, {"dimensions": 0, "vector": {}}),
        unavailable=Struct(
            SPARSE,
            {
                "dimensions": len(octets),
                "vector": {place: float(octet) for place, octet in enumerate(octets, 1)},
            },
        ),
    )


def _sparse(text: str) -> Struct:
    """Read a sparse vector, as {1:1.5,3:2}/5."""
    told, slash, dimensions = text.partition("/")
    if not slash or told[:1] != "{" or told[-1:] != "}":
        raise ValueError("no sparse vector")
    if int(dimensions) > MOST_DIMENSIONS:
        raise ValueError(
            f"a sparse vector of {dimensions} dimensions, and the schema allows "
            f"{MOST_DIMENSIONS}: leave the column out"
        )
    pairs = (one.split(":") for one in told[1:-1].split(",") if one)
    vector = {int(place): float(number) for place, number in pairs}
    return Struct(SPARSE, {"dimensions": int(dimensions), "vector": vector})


# Kinds of extension types, by type name.
MAKERS: Final[Mapping[str, Callable[[int, EventSettings], Kind]]] = {
    "geometry": _shape("Geometry"),
    "geography": _shape("Geography"),
    "vector": _vector("DoubleVector", Type.FLOAT64),
    "halfvec": _vector("FloatVector", Type.FLOAT32),
    "sparsevec": _sparse_vector,
}
