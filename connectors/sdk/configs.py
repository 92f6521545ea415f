"""Defines the keys of a config: types, defaults, checks and texts.

A definition serves to check a config, to answer `validate`, and to show a form in a browser. Values
are strings or JSON values, and are parsed once.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

# Long enough for queries and certificates.
MAX_VALUE_CHARS: Final = 1_000_000


class Kind(Enum):
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the word of a type


class Importance(Enum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Required(Enum):
    """The default of a required key."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED

# Returns the error of a parsed value, or None.
Check: TypeAlias = Callable[[Any], str | None]
# Returns values to recommend for a key, given all others.
Recommend: TypeAlias = Callable[[Mapping[str, Any]], list[Any]]
# Returns whether a key is relevant, given all others.
Visible: TypeAlias = Callable[[Mapping[str, Any]], bool]
# Returns the paths in a parsed value.
PathsIn: TypeAlias = Callable[[Any], Iterable[str]]
# Begin and end of a part of a value.
Span: TypeAlias = tuple[int, int]
# Returns the secret parts of a value, given the whole config.
SecretParts: TypeAlias = Callable[[str, Mapping[str, str]], Iterable[Span]]
# Returns the hosts and ports that a parsed value leads to, given the connector's other values.
TargetsIn: TypeAlias = Callable[[Any, Mapping[str, Any]], Iterable[tuple[str, int]]]
# The mask shown instead of a secret.
MASK: Final = "[hidden]"


class Secret:
    """A parsed PASSWORD: prints as a mask, and is not a str, so that no code writes it by accident.

    JSON, pickle, joins and concatenations fail on it; call `reveal` to get the text.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = str(text)

    def __repr__(self) -> str:
        return MASK

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __len__(self) -> int:
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # In constant time.
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _memo: object) -> "Secret":
        return self

    def __reduce_ex__(self, _protocol: object) -> str:
        raise TypeError("a secret cannot be pickled: pass on what needs it, or call reveal()")

    def reveal(self) -> str:
        return self._text


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files below the home's folder `files` that a key names; its author needs their right."""

    is_written: bool
    # Whether a path names a folder with all that is below it.
    is_folder: bool = False
    # For values that hold more than one path.
    paths: PathsIn = lambda value: (value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key: its type, its meaning, and its place in the form."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    importance: Importance
    doc: str
    check: Check | None = None
    group: str | None = None
    width: Width = Width.NONE
    display_name: str = ""
    # An example of a value, if the default is none.
    example: str = ""
    # What a number counts: ms, s, min, h or B. Empty if the last part of the name says it (.ms,
    # .seconds, .minutes, .hours, .bytes), or if it counts something else. Forms take 5 min for it.
    unit: str = ""
    # Whether a text has several lines, such as a query.
    has_lines: bool = False
    dependents: tuple[str, ...] = ()
    recommend: Recommend | None = None
    visible: Visible | None = None
    is_internal: bool = False
    # Every key whose value is a path has it; `connectors.sdk.home_files` opens the path.
    files: Files | None = None
    # Every key that names a server has it, so that a config is refused at this key if connectors
    # may not reach the server; `connectors.sdk.outgoing` decides, here and when a task connects.
    targets: TargetsIn | None = None
    # The secret parts of a value that is not a PASSWORD; URLs are searched without it.
    secret_parts: SecretParts | None = None

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The validated value of a key, in the answer of `validate`."""

    name: str
    value: Any
    recommended: tuple[Any, ...] = ()
    errors: tuple[str, ...] = ()
    is_visible: bool = True


@dataclass(frozen=True, slots=True)
class Definition:
    """All keys of a connector, converter or transform, in the order of its form."""

    keys: tuple[Key, ...] = ()
    by_name: Mapping[str, Key] = field(init=False)

    def __post_init__(self) -> None:
        named = {key.name: key for key in self.keys}
        assert len(named) == len(self.keys), "a key has one definition"
        object.__setattr__(self, "by_name", named)

    def __add__(self, others: Iterable[Key]) -> "Definition":
        return Definition((*self.keys, *others))

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys)
