"""Compiles a tree of conditions on records into two functions.

Pure. One function checks a record; the other checks the unpacked bytes of a whole batch, and is
false only if no record in it can match, so that most batches are never decoded. A tree comes from a
client: its depth, its size and its operands are bounded before it is used.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from brokers.protocol.records.reader import Record

# Limits of a tree: people write a handful of conditions, and each costs time for every record.
MAX_DEPTH: Final = 16
MAX_CONDITIONS: Final = 64
# Limits of the operands.
MAX_NEEDLE_BYTES: Final = 4_096
MAX_PATH_STEPS: Final = 32
# A larger key or value is not read as JSON; it would take more than 10 ms each.
MAX_JSON_BYTES: Final = 1024 * 1024

Matches: TypeAlias = Callable[[Record], bool]
MayHold: TypeAlias = Callable[[bytes], bool]
Json: TypeAlias = Any
Step: TypeAlias = str | int


class Condition(NamedTuple):
    """See the module."""

    matches: Matches
    may_hold: MayHold


def _always(_any: object) -> bool:
    return True


EVERY_RECORD: Final = Condition(_always, _always)


class _Missing:
    """Stands for a missing part of a JSON document."""


_MISSING: Final = _Missing()


def condition_of(tree: Json) -> Condition:
    """Compile a tree; None matches every record. ValueError has the fault of an invalid tree."""
    return EVERY_RECORD if tree is None else _Compiler().compile(tree, 1)


class _Documents:
    """The JSON document of the current key or value, parsed once for all conditions."""

    def __init__(self) -> None:
        self._data: bytes | None = None
        self._value: Json = _MISSING

    def of(self, data: bytes | None) -> Json:
        """Return the document; `_MISSING` if it is not valid JSON."""
        if data is not self._data:
            self._data, self._value = data, _parsed(data)
        return self._value


class _Compiler:
    """Compiles one tree."""

    def __init__(self) -> None:
        self._count = 0
        self._documents = {"key": _Documents(), "value": _Documents()}

    def compile(self, tree: Json, depth: int) -> Condition:
        kind, told = _only_item(tree)
        self._count += 1
        if self._count > MAX_CONDITIONS:
            raise ValueError(f"a predicate may have {MAX_CONDITIONS} conditions, this has more")
        if depth > MAX_DEPTH:
            raise ValueError(f"a predicate may be {MAX_DEPTH} levels deep, this is deeper")
        if kind in ("all", "any"):
            return self._joined(kind, told, depth)
        if kind == "not":
            inner = self.compile(told, depth + 1).matches
            return Condition(lambda record: not inner(record), _always)
        if kind == "json":
            return self._json(told)
        if kind in _SIMPLE:
            return _SIMPLE[kind](told)
        raise ValueError(
            f"{kind!r} is not a condition; use all, any, not, contains, key, value, header, "
            "timestamp or json"
        )

    def _joined(self, kind: str, told: Json, depth: int) -> Condition:
        if not isinstance(told, list) or not told:
            raise ValueError(f"{kind!r} holds a list of conditions that is not empty")
        parts = [self.compile(one, depth + 1) for one in told]
        matches, may_hold = [p.matches for p in parts], [p.may_hold for p in parts]
        if kind == "all":
            return Condition(
                lambda record: all(one(record) for one in matches),
                lambda body: all(one(body) for one in may_hold),
            )
        return Condition(
            lambda record: any(one(record) for one in matches),
            lambda body: any(one(body) for one in may_hold),
        )

    def _json(self, told: Json) -> Condition:
        fields = _fields(told, "json", needed=("path", "op"), allowed=("in", "value"))
        side, path, op = _side(fields), fields["path"], fields["op"]
        if (
            not isinstance(path, list)
            or len(path) > MAX_PATH_STEPS
            or not all(type(step) in (str, int) for step in path)
        ):
            raise ValueError(
                f"'path' is {_shown(path)}; it is a list of names and indexes, at most "
                f"{MAX_PATH_STEPS}"
            )
        documents, is_key = self._documents[side], side == "key"
        holds = _comparison(op, fields)

        def matches(record: Record) -> bool:
            found = _follow(documents.of(record.key if is_key else record.value), path)
            return found is not _MISSING and holds(found)

        # Text in JSON may be written with escapes, so the bytes prove nothing.
        return Condition(matches, _always)


# -- conditions ----------------------------------------------------------------------------------


def _contains(told: Json) -> Condition:
    fields = _fields(told, "contains", allowed=("in", "text", "base64", "ignore_case"))
    needle, is_key = _bytes_of(fields, "contains"), _side(fields) == "key"
    ignore_case = fields.get("ignore_case", False)
    if not isinstance(ignore_case, bool):
        raise ValueError(  # noqa: TRY004 - of who asks
            f"'ignore_case' is {_shown(ignore_case)}; it is true or false"
        )
    if ignore_case:
        small = needle.lower()

        def matches_any_case(record: Record) -> bool:
            data = record.key if is_key else record.value
            return data is not None and small in data.lower()

        return Condition(matches_any_case, lambda body: small in body.lower())

    def matches(record: Record) -> bool:
        data = record.key if is_key else record.value
        return data is not None and needle in data

    return Condition(matches, lambda body: needle in body)


def _key(told: Json) -> Condition:
    if told is None:
        return Condition(lambda record: record.key is None, _always)
    wanted = _bytes_of(_fields(told, "key", allowed=("text", "base64")), "key")
    return Condition(lambda record: record.key == wanted, lambda body: wanted in body)


def _value(told: Json) -> Condition:
    if told is None:
        return Condition(lambda record: record.value is None, _always)
    wanted = _bytes_of(_fields(told, "value", allowed=("text", "base64")), "value")
    return Condition(lambda record: record.value == wanted, lambda body: wanted in body)


def _timestamp(told: Json) -> Condition:
    fields = _fields(told, "timestamp", needed=("op", "value"))
    if type(fields["value"]) is not int or fields["op"] not in (*_ORDERS, "==", "!="):
        raise ValueError("'timestamp' is compared with milliseconds, by ==, !=, <, <=, > or >=")
    holds = _comparison(fields["op"], fields)
    return Condition(lambda record: holds(record.timestamp), _always)


def _header(told: Json) -> Condition:
    fields = _fields(told, "header", needed=("name",), allowed=("text", "base64"))
    name = _bytes_of({"text": fields.pop("name")}, "header")
    if not fields:
        return Condition(
            lambda record: any(key == name for key, _value in record.headers),
            lambda body: name in body,
        )
    wanted = _bytes_of(fields, "header")
    return Condition(
        lambda record: (name, wanted) in record.headers,
        lambda body: name in body and wanted in body,
    )


def _comparison(op: Json, fields: Mapping[str, Json]) -> Callable[[Json], bool]:
    if op == "exists":
        if "value" in fields:
            raise ValueError("'exists' compares with nothing, so it has no 'value'")
        return _always
    if "value" not in fields:
        raise ValueError(f"the condition {_shown(op)} needs a 'value' to compare with")
    wanted = fields["value"]
    kind = _kind(wanted)
    if op == "==":
        return lambda found: _kind(found) is kind and bool(found == wanted)
    if op == "!=":
        return lambda found: _kind(found) is not kind or bool(found != wanted)
    if op in ("contains", "icontains"):
        return _part(op, wanted)
    if not isinstance(op, str) or op not in _ORDERS:
        raise ValueError(
            f"'op' is {_shown(op)}; it is ==, !=, <, <=, >, >=, contains, icontains or exists"
        )
    if kind not in (float, str):
        raise ValueError(f"{op!r} compares numbers and text, and 'value' is {_shown(wanted)}")
    order = _ORDERS[op]
    return lambda found: _kind(found) is kind and order(found, wanted)


def _part(op: str, wanted: Json) -> Callable[[Json], bool]:
    if not isinstance(wanted, str) or len(wanted.encode()) > MAX_NEEDLE_BYTES:
        raise ValueError(
            f"{op!r} looks for a text of at most {MAX_NEEDLE_BYTES} bytes, not {_shown(wanted)}"
        )
    if op == "contains":
        return lambda found: isinstance(found, str) and wanted in found
    small = wanted.lower()
    return lambda found: isinstance(found, str) and small in found.lower()


_ORDERS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


_SIMPLE: Final[Mapping[str, Callable[[Json], Condition]]] = {
    "contains": _contains,
    "key": _key,
    "value": _value,
    "header": _header,
    "timestamp": _timestamp,
}


def _kind(value: Json) -> type:
    """Return the type of JSON: all numbers are one, and true is no number."""
    return float if type(value) is int else type(value)


def _follow(document: Json, path: Sequence[Step]) -> Json:
    for step in path:
        if isinstance(step, str):
            if not isinstance(document, dict) or step not in document:
                return _MISSING
        elif not isinstance(document, list) or not -len(document) <= step < len(document):
            return _MISSING
        document = document[step]
    return document


def _parsed(data: bytes | None) -> Json:
    if data is None or len(data) > MAX_JSON_BYTES:
        return _MISSING
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return _MISSING


# -- input ---------------------------------------------------------------------------------------


def _only_item(tree: Json) -> tuple[str, Json]:
    if not isinstance(tree, dict) or len(tree) != 1:
        raise ValueError(f"{_shown(tree)} is not a condition: an object with one field, its kind")
    return next(iter(tree.items()))


def _fields(
    told: Json, kind: str, *, needed: Sequence[str] = (), allowed: Sequence[str] = ()
) -> dict[str, Json]:
    if not isinstance(told, dict):
        raise ValueError(  # noqa: TRY004 - of who asks
            f"{kind!r} holds an object, not {_shown(told)}"
        )
    for name in told:
        if name not in needed and name not in allowed:
            known = ", ".join((*needed, *allowed))
            raise ValueError(f"{kind!r} has no field {_shown(name)}; it has {known}")
    for name in needed:
        if name not in told:
            raise ValueError(f"{kind!r} needs a field {name!r}")
    return dict(told)


def _side(fields: Mapping[str, Json]) -> str:
    side = fields.get("in", "value")
    if side not in ("key", "value"):
        raise ValueError(f"'in' is {_shown(side)}; it is 'key' or 'value'")
    return str(side)


def _bytes_of(fields: Mapping[str, Json], kind: str) -> bytes:
    """Read the bytes to look for, given as text or as base64."""
    told = [name for name in ("text", "base64") if name in fields]
    if len(told) != 1:
        raise ValueError(f"{kind!r} needs either 'text' or 'base64'")
    text = fields[told[0]]
    if not isinstance(text, str):
        raise ValueError(  # noqa: TRY004 - of who asks
            f"{told[0]!r} of {kind!r} is {_shown(text)}, not a text"
        )
    try:
        found = text.encode() if told[0] == "text" else b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{told[0]!r} of {kind!r} cannot be read: {error}") from None
    if len(found) > MAX_NEEDLE_BYTES:
        raise ValueError(f"{kind!r} looks for {len(found)} bytes, {MAX_NEEDLE_BYTES} are allowed")
    return found


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "…"
