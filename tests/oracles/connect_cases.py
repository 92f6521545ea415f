"""Messages of connectors at random, as the JSON that Java's converter and ours read.

A value is always of its schema; what is of none is tried by hand, since there the two differ on
purpose. Numbers have few digits, so that every Java writes them alike.
"""

import base64
from collections.abc import Callable
from random import Random
from typing import Any, Final

LOGICAL: Final = "org.apache.kafka.connect.data."
NAMES: Final = ("a", "b", "c", "d.e", "f")
TEXTS: Final = (
    *("", "x", "7", "-300", "1.5", "1e3", "true", "FALSE", "null", 'quo"te', "ünïcode €", "[1,2]"),
    *("2024-02-29", "NaN", "99999999999999999999", " 5", "+5", "{}", "a:b", "back\\slash", "1.50f"),
)
_DAY: Final = 86_400_000


def schema(random: Random, depth: int = 2) -> dict[str, Any]:
    """Draw a schema: optional or not, with or without default, name, version and parameters."""
    kind = random.choice(_SCALARS if depth == 0 else (*_SCALARS, *_SCALARS, *_NESTED))
    made: dict[str, Any] = _MAKERS[kind](random, depth) if kind in _MAKERS else {"type": kind}
    made["optional"] = random.random() < 0.4
    if random.random() < 0.15 and "name" not in made:
        made |= {"name": "some.name", "version": 3, "doc": "words", "parameters": {"p": "q"}}
    # Java reads no struct as a default: it compares the struct's schema with its builder.
    if random.random() < 0.25 and made["type"] != "struct":
        made["default"] = payload(random, {**made, "optional": False})
    return made


def struct_schema(random: Random, depth: int = 2) -> dict[str, Any]:
    made = _struct(random, depth)
    made["optional"] = random.random() < 0.3
    return made


def payload(random: Random, of: dict[str, Any]) -> Any:
    """Draw a value of a schema."""
    if of.get("optional") and random.random() < 0.25:
        return None
    return _VALUES[of.get("name") if of.get("name") in _VALUES else of["type"]](random, of)


def message(random: Random, *, is_struct: bool) -> dict[str, Any]:
    of = struct_schema(random) if is_struct else schema(random)
    return {"schema": of, "payload": payload(random, of)}


def plain(random: Random, depth: int = 2) -> Any:
    """Draw what JSON has."""
    kind = random.randrange(6 if depth == 0 else 9)
    if kind >= 7 and depth:
        return plain_map(random, depth)
    if kind == 6 and depth:
        return [plain(random, depth - 1) for _ in range(random.randrange(3))]
    return random.choice((None, True, False, _whole(random, 63), _real(random), _text(random)))


def plain_map(random: Random, depth: int = 2) -> dict[str, Any]:
    names = random.sample(NAMES, random.randrange(1, len(NAMES)))
    return {name: plain(random, depth - 1) for name in names}


def _struct(random: Random, depth: int) -> dict[str, Any]:
    names = random.sample(NAMES, random.randrange(1, len(NAMES)))
    fields = [{**schema(random, depth - 1), "field": name} for name in names]
    return {"type": "struct", "fields": fields}


def _named(kind: str, word: str, **parameters: str) -> Callable[[Random, int], dict[str, Any]]:
    def make(_random: Random, _depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": kind, "name": LOGICAL + word, "version": 1}
        return made | ({"parameters": parameters} if parameters else {})

    return make


_NESTED: Final = ("array", "map", "pairs", "struct", "struct")
_SCALARS: Final = (
    *("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "string", "bytes"),
    *("Date", "Time", "Timestamp", "Decimal"),
)
_MAKERS: Final[dict[str, Callable[[Random, int], dict[str, Any]]]] = {
    "array": lambda random, depth: {"type": "array", "items": schema(random, depth - 1)},
    "map": lambda random, depth: {
        "type": "map",
        "keys": {"type": "string"},
        "values": schema(random, depth - 1),
    },
    "pairs": lambda random, depth: {
        "type": "map",
        "keys": {"type": "int32"},
        "values": schema(random, depth - 1),
    },
    "struct": _struct,
    "Date": _named("int32", "Date"),
    "Time": _named("int32", "Time"),
    "Timestamp": _named("int64", "Timestamp"),
    "Decimal": _named("bytes", "Decimal", scale="2"),
}


def _whole(random: Random, bits: int) -> int:
    half = 1 << bits
    edges = (0, 1, -1, 5, half - 1, -half)
    return random.choice((*edges, random.randrange(-half, half)))


def _real(random: Random) -> float:
    # Sums of few powers of two are written alike by every algorithm.
    return random.choice((0.0, 0.5, -1.25, 3.75, 1e7, 1e10, 0.0078125, random.randrange(99) / 8))


def _text(random: Random) -> str:
    return random.choice(TEXTS)


def _bytes(random: Random, _of: Any) -> str:
    return base64.b64encode(random.randbytes(random.randrange(5))).decode()


def _map(random: Random, of: dict[str, Any]) -> Any:
    count = random.randrange(3)
    if of["keys"]["type"] == "string":
        return {NAMES[index]: payload(random, of["values"]) for index in range(count)}
    return [[index, payload(random, of["values"])] for index in range(count)]


_VALUES: Final[dict[Any, Callable[[Random, dict[str, Any]], Any]]] = {
    "int8": lambda random, _: _whole(random, 7),
    "int16": lambda random, _: _whole(random, 15),
    "int32": lambda random, _: _whole(random, 31),
    "int64": lambda random, _: _whole(random, 63),
    "float": lambda random, _: _real(random),
    "double": lambda random, _: _real(random),
    "boolean": lambda random, _: random.random() < 0.5,
    "string": lambda random, _: _text(random),
    "bytes": _bytes,
    "array": lambda random, of: [payload(random, of["items"]) for _ in range(random.randrange(3))],
    "map": _map,
    "struct": lambda random, of: {one["field"]: payload(random, one) for one in of["fields"]},
    # From the second day on: Java writes earlier ones without their day.
    LOGICAL + "Date": lambda random, _: random.randrange(1, 30_000),
    LOGICAL + "Time": lambda random, _: random.choice((0, _DAY - 1, random.randrange(_DAY))),
    LOGICAL + "Timestamp": lambda random, _: random.choice(
        (_DAY, 20_000 * _DAY, random.randrange(_DAY, 2_000_000_000_000))
    ),
    LOGICAL + "Decimal": lambda random, _: base64.b64encode(
        random.choice((0, 1, -1, 12_345, -99)).to_bytes(3, "big", signed=True)
    ).decode(),
}
