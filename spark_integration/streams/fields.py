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
    # 64 bits, and never infinite or NaN: such a result is no value.
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIME = "time"
    BYTES = "bytes"
    # Of scalars, as an aggregate answers them; no expression takes one.
    LIST = "list"


Columns: TypeAlias = Mapping[str, Kind]

# What a field of JSON can be.
IN_JSON: Final = (Kind.TEXT, Kind.LONG, Kind.DOUBLE, Kind.BOOLEAN, Kind.TIME)
NUMBERS: Final = frozenset({Kind.LONG, Kind.DOUBLE})
# What each kind may stand for in a key: the text of a double differs between Java and Python, and
# bytes are no JSON.
IN_KEYS: Final = frozenset({Kind.TEXT, Kind.LONG, Kind.BOOLEAN, Kind.TIME})
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
# What every record has beside its value.
RECORD_KEY: Final = "record_key"
RECORD_TIME: Final = "record_time"
# What expressions of a record may name though no select does.
ALWAYS: Final[Columns] = {RECORD_KEY: Kind.BYTES, RECORD_TIME: Kind.TIME}
# What a group in a window has beside its fields.
WINDOW_START: Final = "window_start"
WINDOW_END: Final = "window_end"
# What programs of ours add to a row on Spark.
OWN_PREFIX: Final = "samsa_"
# The time that windows go by, which stays with a row whatever is selected.
HAPPENED: Final = "samsa_time"
RESERVED: Final = frozenset({RECORD_KEY, RECORD_TIME, WINDOW_START, WINDOW_END})


def parse_kind(step: str, name: str, word: str) -> Kind:
    kinds = {kind.value: kind for kind in IN_JSON}
    if word not in kinds:
        raise refused(step, f"{name!r} is of kind {word!r}", f"give one of {', '.join(kinds)}")
    return kinds[word]


def require_names(step: str, names: Iterable[object]) -> None:
    """Refuse names that Spark or JSON could read in another way, and names given twice."""
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise refused(
                step,
                f"{name!r} is no name of a field",
                "use up to 128 letters, digits and underscores, beginning with a letter",
            )
        if name.lower() in RESERVED or name.lower().startswith(OWN_PREFIX):
            raise refused(step, f"the name {name!r} is taken", "choose another")
        # Spark's columns do not know capitals.
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise refused(step, f"{name!r} and {other!r} differ in capitals only", "rename one")


def require_column(step: str, columns: Columns, name: str) -> Kind:
    kind = columns.get(name)
    if kind is None:
        raise refused(step, f"there is no field {name!r} here", f"there are {shown(columns)}")
    return kind


def shown(columns: Columns) -> str:
    return ", ".join(f"{name} ({kind.value})" for name, kind in columns.items()) or "none"
