"""Adjusts names of schemas and fields to Avro's rules, in Debezium's two ways."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from connectors.plugins.postgres.capture.event_settings import Adjustment

# Characters that neither way changes; schema names have dots between their parts.
_FIELD: Final = re.compile(r"[^A-Za-z0-9_]")
_SCHEMA: Final = re.compile(r"[^A-Za-z0-9_.]")


def _coded(found: re.Match[str]) -> str:
    """Encode a character by its UTF-16 units, as Java does."""
    units = found[0].encode("utf-16-be")
    return "".join(f"_u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _avro(name: str, strange: re.Pattern[str]) -> str:
    adjusted = strange.sub("_", name)
    return f"_{adjusted}" if adjusted[:1].isdigit() else adjusted


def _avro_unicode(name: str, strange: re.Pattern[str]) -> str:
    """Encode underscores too, so that two names never collide."""
    adjusted = re.sub(f"_|{strange.pattern}", _coded, name)
    first = re.match(r"[0-9]", adjusted)
    return adjusted if first is None else _coded(first) + adjusted[1:]


_WAYS: Final[Mapping[Adjustment, Callable[[str, re.Pattern[str]], str]]] = {
    Adjustment.NONE: lambda name, _strange: name,
    Adjustment.AVRO: _avro,
    Adjustment.AVRO_UNICODE: _avro_unicode,
}


def of_schema(name: str, adjustment: Adjustment) -> str:
    return _WAYS[adjustment](name, _SCHEMA)


def of_field(name: str, adjustment: Adjustment) -> str:
    return _WAYS[adjustment](name, _FIELD)
