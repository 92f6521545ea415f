"""Defines messages as classes whose attributes are field specs.

Knows nothing of bytes; `codec` turns these specs into functions.  A message is one slotted class
for all its versions: each field has its first and last version on the wire, and a version
without it leaves the default in the attribute.  A class reads like the protocol's own definition:

    class FetchTopic(Message):
        topic: str = string("Name of the topic.", until=12, ignorable=True)
        topic_id: bytes = uuid("Id of the topic.", since=13)

    class FetchRequest(Message, key=1, versions=(4, 18), flexible=12):
        topics: list[FetchTopic] = array(FetchTopic, "What to read.")

Values are plain Python: uuids are 16 raw bytes, record data is a memoryview that is
never copied, and a tagged structure that is absent from the wire is None.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, Self, TypedDict, Unpack, dataclass_transform

ZERO_UUID: Final = bytes(16)


class Kind(Enum):
    """Wire types, with the struct letter and the bytes of those that have a fixed size."""

    code: str
    size: int

    def __new__(cls, number: int, code: str, size: int) -> Self:
        member = object.__new__(cls)
        member._value_ = number
        member.code = code
        member.size = size
        return member

    BOOLEAN = 1, "?", 1
    INT8 = 2, "b", 1
    INT16 = 3, "h", 2
    UINT16 = 4, "H", 2
    INT32 = 5, "i", 4
    UINT32 = 6, "I", 4
    INT64 = 7, "q", 8
    FLOAT64 = 8, "d", 8
    UUID = 9, "16s", 16
    STRING = 10, "", 0
    BYTES = 11, "", 0
    RECORDS = 12, "", 0
    ARRAY = 13, "", 0
    STRUCT = 14, "", 0


# The kinds of an array's plain elements.
INT8: Final = Kind.INT8
INT16: Final = Kind.INT16
INT32: Final = Kind.INT32
INT64: Final = Kind.INT64
STRING: Final = Kind.STRING
UUID: Final = Kind.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a message: its type on the wire, and its versions."""

    name: str
    kind: Kind
    sentence: str
    since: int
    until: int | None  # the last version that carries it; None: all later ones
    nullable: int | None  # the first version in which null is legal; None: never
    tag: int | None  # the tag number of an optional field; None: always present
    default: Any
    ignorable: bool  # a version without the field may drop a non-default value
    element: "Kind | type[Message] | None"  # an array's element, or the class of a structure

    def is_in(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable is not None and version >= self.nullable


@dataclass(frozen=True, slots=True)
class _Spec:
    """A field whose name is not yet known, in a class body."""

    kind: Kind
    options: dict[str, Any]

    def named(self, name: str) -> Field:
        return Field(name=name, kind=self.kind, **self.options)


class Options(TypedDict, total=False):
    """The options of every kind of field; see `Field`."""

    since: int
    until: int | None
    nullable: int | None
    tag: int | None
    ignorable: bool


def _spec(
    kind: Kind,
    sentence: str,
    default: object,
    options: Options,
    element: "Kind | type[Message] | None" = None,
) -> Any:
    # Any, so that a class body can say `acks: int = int16(...)` and a type checker sees an int with
    # a default.
    absent: Options = {"since": 0, "until": None, "nullable": None, "tag": None, "ignorable": False}
    given = {"sentence": sentence, "default": default, "element": element}
    return _Spec(kind, {**absent, **options, **given})


def boolean(sentence: str = "", *, default: bool = False, **options: Unpack[Options]) -> Any:
    return _spec(Kind.BOOLEAN, sentence, default, options)


def int8(sentence: str = "", *, default: int = 0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.INT8, sentence, default, options)


def int16(sentence: str = "", *, default: int = 0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.INT16, sentence, default, options)


def uint16(sentence: str = "", *, default: int = 0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.UINT16, sentence, default, options)


def int32(sentence: str = "", *, default: int = 0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.INT32, sentence, default, options)


def uint32(sentence: str = "", *, default: int = 0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.UINT32, sentence, default, options)


def int64(sentence: str = "", *, default: int = 0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.INT64, sentence, default, options)


def float64(sentence: str = "", *, default: float = 0.0, **options: Unpack[Options]) -> Any:
    return _spec(Kind.FLOAT64, sentence, default, options)


def uuid(sentence: str = "", *, default: bytes = ZERO_UUID, **options: Unpack[Options]) -> Any:
    return _spec(Kind.UUID, sentence, default, options)


def string(sentence: str = "", *, default: str | None = "", **options: Unpack[Options]) -> Any:
    return _spec(Kind.STRING, sentence, default, options)


def blob(sentence: str = "", *, default: bytes | None = b"", **options: Unpack[Options]) -> Any:
    """Bytes that are copied out of the frame: assignments, tokens, metadata; never record data."""
    return _spec(Kind.BYTES, sentence, default, options)


def records(sentence: str = "", **options: Unpack[Options]) -> Any:
    """Record data: a view into the frame when decoded, any sized buffer when encoded."""
    return _spec(Kind.RECORDS, sentence, None, options)


_EMPTY: Final = ()  # stands for "a fresh empty list" as an array's default


def array(
    element: "Kind | type[Message]",
    sentence: str = "",
    *,
    default: tuple[()] | None = _EMPTY,
    **options: Unpack[Options],
) -> Any:
    return _spec(Kind.ARRAY, sentence, default, options, element)


def nested(structure: "type[Message]", sentence: str = "", **options: Unpack[Options]) -> Any:
    """One structure. Nullable or tagged ones default to None, others to one of defaults."""
    optional = options.get("nullable") is not None or options.get("tag") is not None
    default = None if optional else _EMPTY
    return _spec(Kind.STRUCT, sentence, default, options, structure)


class _MessageType(type):
    """Builds the slotted class from the field specs of its body."""

    def __new__(
        mcs,
        name: str,
        parents: tuple[type, ...],
        body: dict[str, Any],
        *,
        key: int | None = None,
        versions: tuple[int, int] = (0, 0),
        flexible: int | None = None,
    ) -> "_MessageType":
        specs = {field: spec for field, spec in body.items() if isinstance(spec, _Spec)}
        for field in specs:
            del body[field]
        body["__slots__"] = tuple(specs)
        body["FIELDS"] = tuple(spec.named(field) for field, spec in specs.items())
        body["KEY"], body["VERSIONS"], body["FLEXIBLE"] = key, versions, flexible
        return super().__new__(mcs, name, parents, body)


@dataclass_transform()
class Message(metaclass=_MessageType):
    """A message or a structure inside one. Compared and printed by its fields.

    `KEY`, `VERSIONS` and `FLEXIBLE` are set for whole messages only; a structure inside one follows
    the version of the message around it.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int | None] = None  # first version with compact lengths and tags
    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        # Generated per class on its first use: a generated signature is both checked and fast.
        cls = type(self)
        cls.__init__ = _generate_init(cls)  # type: ignore[method-assign]
        cls.__init__(self, *values, **named)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable by design

    def __repr__(self) -> str:
        values = ", ".join(f"{slot}={getattr(self, slot)!r}" for slot in self.__slots__)
        return f"{type(self).__name__}({values})"

    def copy(self) -> Self:
        """Return a shallow copy."""
        return type(self)(*(getattr(self, slot) for slot in self.__slots__))


def _generate_init(cls: type[Message]) -> Any:
    """Compile the constructor of one class: every argument optional, in field order."""
    parameters, lines = ["self"], []
    names: dict[str, Any] = {"EMPTY": _EMPTY}
    for field in cls.FIELDS:
        names[f"default_{field.name}"] = field.default
        parameters.append(f"{field.name}=default_{field.name}")
        if field.default is _EMPTY:
            fresh = "[]" if field.kind is Kind.ARRAY else "fresh_" + field.name + "()"
            names["fresh_" + field.name] = field.element
            lines.append(f"self.{field.name} = {fresh} if {field.name} is EMPTY else {field.name}")
        else:
            lines.append(f"self.{field.name} = {field.name}")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"])
    exec(compile(source, f"<{cls.__name__}.__init__>", "exec"), names)
    return names["__init__"]
