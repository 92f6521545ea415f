"""Values of any message in any version: hypothesis strategies, and the corners every test needs.

Derived from the field specs alone, so that a new message is covered as soon as it is written down.
Only what the version carries is filled in; everything else keeps its default, because an encoder
refuses to drop a value. A structure behind a tag may come out equal to its default here: the wire
does not carry such a one, and `canonical` says what a decoder makes of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from brokers.protocol.schema import Field, Kind, Message

M = TypeVar("M", bound=Message)

Pair = tuple[type[Message], int]

RANGES = {
    Kind.INT8: (-(1 << 7), (1 << 7) - 1),
    Kind.INT16: (-(1 << 15), (1 << 15) - 1),
    Kind.UINT16: (0, (1 << 16) - 1),
    Kind.INT32: (-(1 << 31), (1 << 31) - 1),
    Kind.UINT32: (0, (1 << 32) - 1),
    Kind.INT64: (-(1 << 63), (1 << 63) - 1),
}
# Around the places where a compact length grows by a byte, in ASCII and beyond it.
LONG_TEXTS = ("x" * 126, "x" * 127, "x" * 128, "žluťoučký kůň " * 20, "𝄞" * 40, "x" * 17_000)
MAX_ELEMENTS = 3  # an array of arrays of arrays stays small enough for thousands of examples


def is_nullable(field: Field, version: int) -> bool:
    """Tell whether None can stand on the wire. A uuid has no null: zeros stand for it."""
    return field.is_nullable_in(version) and field.kind is not Kind.UUID


# -- strategies ----------------------------------------------------------------------------------


def messages(message: type[M], version: int) -> st.SearchStrategy[M]:
    """Draw whole messages, or structures inside one."""
    fields = {
        field.name: _field(field, version) for field in message.FIELDS if field.is_in(version)
    }
    return st.builds(message, **fields)


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    value = _present(field, version)
    may_be_none = is_nullable(field, version) or (field.tag is not None and field.default is None)
    return st.none() | value if may_be_none else value


def _present(field: Field, version: int) -> st.SearchStrategy[Any]:
    if isinstance(field.element, type):
        inner = messages(field.element, version)
    else:
        inner = _plain(field.element or field.kind)
    return st.lists(inner, max_size=MAX_ELEMENTS) if field.kind is Kind.ARRAY else inner


def _plain(kind: Kind) -> st.SearchStrategy[Any]:
    if kind in RANGES:
        low, high = RANGES[kind]
        edges = st.sampled_from(sorted({low, max(low, -1), 0, 1, high}))
        return edges | st.integers(low, high)
    return _PLAIN[kind]


_PLAIN: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.FLOAT64: st.floats(allow_nan=False, allow_infinity=False),
    Kind.UUID: st.binary(min_size=16, max_size=16) | st.just(bytes(16)),
    # No surrogates: UTF-8 cannot carry them.
    Kind.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(LONG_TEXTS),
    Kind.BYTES: st.binary(max_size=40) | st.just(bytes(range(256))),
    Kind.RECORDS: st.binary(max_size=300).map(memoryview),
}


# -- corners -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """One way to fill every field alike."""

    name: str
    integer: Callable[[int, int], int]
    text: str
    blob: bytes
    real: float
    flag: bool
    uuid: bytes
    elements: int
    nulls: bool  # None wherever it is legal
    tags: bool  # optional fields are set


CORNERS = (
    Corner(
        name="null",
        integer=lambda low, _: low,
        text="",
        blob=b"",
        real=-1.5,
        flag=False,
        uuid=bytes(16),
        elements=1,
        nulls=True,
        tags=False,
    ),
    Corner(
        name="empty",
        integer=lambda low, _: max(low, -1),
        text="",
        blob=b"",
        real=0.0,
        flag=False,
        uuid=bytes(15) + b"\1",
        elements=0,
        nulls=False,
        tags=True,
    ),
    Corner(
        name="full",
        integer=lambda _, high: high,
        text="žluťoučký kůň " * 20,
        blob=bytes(range(256)),
        real=1.7976931348623157e308,
        flag=True,
        uuid=b"\xff" * 16,
        elements=2,
        nulls=False,
        tags=True,
    ),
    Corner(
        name="small",
        integer=lambda _, __: 1,
        text="a",
        blob=b"\0",
        real=1.0,
        flag=True,
        uuid=bytes(range(16)),
        elements=1,
        nulls=False,
        tags=True,
    ),
)


def corner(message: type[M], version: int, how: Corner) -> M:
    """Fill a message one way; fields the version does not carry keep their default."""
    values = {}
    for field in message.FIELDS:
        if field.is_in(version) and (how.tags or field.tag is None):
            is_null = how.nulls and is_nullable(field, version)
            values[field.name] = None if is_null else _corner_value(field, version, how)
    return message(**values)


def _corner_value(field: Field, version: int, how: Corner) -> Any:
    if field.kind is not Kind.ARRAY:
        return _corner_element(field.element or field.kind, version, how)
    return [_corner_element(field.element, version, how) for _ in range(how.elements)]


def _corner_element(element: Any, version: int, how: Corner) -> Any:
    if isinstance(element, type):
        return corner(element, version, how)
    if element in RANGES:
        return how.integer(*RANGES[element])
    return {
        Kind.BOOLEAN: how.flag,
        Kind.FLOAT64: how.real,
        Kind.UUID: how.uuid,
        Kind.STRING: how.text,
        Kind.BYTES: how.blob,
        Kind.RECORDS: memoryview(how.blob),
    }[element]


def corners(message: type[M], version: int) -> list[M]:
    """Give the values that every comparison must see: defaults, nulls, empties, extremes."""
    return [message(), *(corner(message, version, how) for how in CORNERS)]


# -- walking -------------------------------------------------------------------------------------


def replaced(value: M, version: int, change: Callable[[Field, Any], Any]) -> M:
    """Copy a message with `change` applied to every plain value, elements of arrays included."""
    values = {}
    for field in value.FIELDS:
        found = getattr(value, field.name)
        if field.is_in(version) and found is not None:
            found = _replaced_value(field, found, version, change)
        values[field.name] = found
    return type(value)(**values)


def _replaced_value(
    field: Field, value: Any, version: int, change: Callable[[Field, Any], Any]
) -> Any:
    if isinstance(field.element, type):
        if field.kind is Kind.ARRAY:
            return [replaced(item, version, change) for item in value]
        return replaced(value, version, change)
    if field.kind is Kind.ARRAY:
        return [change(field, item) for item in value]
    return change(field, value)


def canonical(value: M, version: int) -> M:
    """Say what comes back from the wire: a tagged structure equal to its default is absent."""
    values = {}
    for field in value.FIELDS:
        found = getattr(value, field.name)
        if field.is_in(version) and isinstance(field.element, type) and found is not None:
            if field.kind is Kind.ARRAY:
                found = [canonical(item, version) for item in found]
            else:
                found = canonical(found, version)
                if field.tag is not None and found == field.element():
                    found = None
        values[field.name] = found
    return type(value)(**values)
