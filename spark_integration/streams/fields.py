"""Kinds of values and the named columns of a step. Pure.

A value of any kind may be absent, which is None here and NULL in Spark. A time is a whole number
of microseconds since 1970 here.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from spark_integration.streams.errors import refused

Scalar: TypeAlias = str | int | float | bool | bytes | None
Value: TypeAlias = Scalar | tuple[Scalar, ...]
Row: TypeAlias = Mapping[str, Value]


class Kind(Enum):
    TEXT = "text"
    # 64 bits with a sign.
    LONG = "long"
    # 64 bits, never infinite or NaN: such a result is absent.
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIME = "time"
    BYTES = "bytes"
    # A list of scalars, the result of an aggregate; expressions do not accept it.
    LIST = "list"


Columns: TypeAlias = Mapping[str, Kind]

# Kinds of JSON fields.
IN_JSON: Final = (Kind.TEXT, Kind.LONG, Kind.DOUBLE, Kind.BOOLEAN, Kind.TIME)
NUMBERS: Final = frozenset({Kind.LONG, Kind.DOUBLE})
# Kinds allowed in keys: the text of a double differs between Java and Python, and JSON has no
# bytes.
IN_KEYS: Final = frozenset({Kind.TEXT, Kind.LONG, Kind.BOOLEAN, Kind.TIME})
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
# Fields of every record besides its value.
RECORD_KEY: Final = "record_key"
RECORD_TIME: Final = "record_time"
# Fields that expressions may always name.
ALWAYS: Final[Columns] = {RECORD_KEY: Kind.BYTES, RECORD_TIME: Kind.TIME}
# Additional fields of a group in a window.
WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
# Internal columns of rows on Spark.
OWN_PREFIX: Final = "samsa_"
# The time used by windows, which a row keeps through selects.
HAPPENED: Final = "samsa_time"
RESERVED: Final = frozenset({RECORD_KEY, RECORD_TIME, WINDOW_START, WINDOW_END})


def parse_kind(step: str, name: str, word: str) -> Kind:
    kinds = {kind.value: kind for kind in IN_JSON}
    if word not in kinds:
        raise refused(step, f"{name!r} is of kind {word!r}", f"give one of {', '.join(kinds)}")
    return kinds[word]


def require_names(step: str, names: Iterable[object]) -> None:
    """Refuse names that Spark or JSON could misinterpret, and duplicates."""
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise refused(
                step,
                f"{name!r} is not a valid field name",
                "use up to 128 letters, digits and underscores, beginning with a letter",
            )
        if name.lower() in RESERVED or name.lower().startswith(OWN_PREFIX):
            raise refused(step, f"the name {name!r} is taken", "choose another")
        # Spark's column names are case-insensitive.
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise refused(step, f"{name!r} and {other!r} differ only in case", "rename one")


def require_column(step: str, columns: Columns, name: str) -> Kind:
    kind = columns.get(name)
    if kind is None:
        raise refused(step, f"there is no field {name!r}", f"the fields are {shown(columns)}")
    return kind


def shown(columns: Columns) -> str:
    return ", ".join(f"{name} ({kind.value})" for name, kind in columns.items()) or "none"
