"""Parses the fields of a transform: a name, or a path to it (`field.syntax.version`).

In a path of version 2, dots separate names, and a name with dots is between backticks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from connectors.runtime.transforms.sides import key_of, map_of, struct_of
from connectors.runtime.values.structs import field_value
from connectors.sdk.checks import one_of_ignoring_case
from connectors.sdk.configs import Importance, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.schemas import Field, Schema, Struct

SYNTAX: Final = "field.syntax.version"
SYNTAX_KEY: Final = key_of(
    SYNTAX,
    Kind.STRING,
    "V1 names fields of the outermost level. V2 is a path: outer.inner, and `a.b`.inner where a "
    "name holds dots.",
    importance=Importance.HIGH,
    default="V1",
    check=one_of_ignoring_case("V1", "V2"),
)
_PURPOSE: Final = "nested field access"


@dataclass(frozen=True, slots=True)
class FieldPath:
    steps: tuple[str, ...]

    def field_of(self, schema: Schema) -> Field | None:
        """Return the field at the end of the path; None if it does not exist."""
        field: Field | None = None
        for step in self.steps:
            field = schema.field(step)
            if field is None:
                return None
            schema = field.schema
        return field

    def value_in_struct(self, struct: Struct, *, fills: bool) -> Any:
        value: Any = struct
        for step in self.steps:
            if value is None:
                return None
            current = struct_of(value, _PURPOSE)
            field = current.schema.field(step)
            if field is None:
                return None
            value = field_value(current, field, fills=fills)
        return value

    def value_in_map(self, value: Any) -> Any:
        for step in self.steps:
            if value is None:
                return None
            value = map_of(value, _PURPOSE).get(step)
        return value


def path_of(text: str, syntax: str) -> FieldPath:
    """Parse a path; ConfigError for an unmatched backtick."""
    return FieldPath(tuple(_steps(text)) if syntax.upper() == "V2" else (text,))


def _steps(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at] == "`":
            step, at = _quoted(text, at)
            yield step
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            yield text[at:end]
            at = end + 1
    # After a dot at the end there is an empty name.
    if text.endswith("."):
        yield ""


def _quoted(text: str, opened: int) -> tuple[str, int]:
    """Return the name between backticks, and the position after it.

    A backtick ends a name only before a dot or at the end, and not after a backslash.
    """
    parts: list[str] = []
    start = at = opened + 1
    while (at := text.find("`", at)) >= 0:
        is_escaped = text[at - 1] == "\\"
        is_last = at == len(text) - 1
        if is_last and not is_escaped:
            return "".join(parts) + text[start:at], at + 1
        if not is_last and text[at + 1] == ".":
            if not is_escaped:
                return "".join(parts) + text[start:at], at + 2
            parts.append(text[start : at - 1] + "`")
            start = at + 1
        at += 1
    raise ConfigError(
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick "
        f"at position {opened} to escape it"
    )


def unknown(text: str) -> DataError:
    return DataError(f"Unknown field: {text}")
