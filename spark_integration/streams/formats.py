"""Formats of a topic's values: JSON with named fields, texts, or bytes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from spark_integration.streams.errors import refused
from spark_integration.streams.fields import Columns, Kind, parse_kind, require_names

# The field of values that are not JSON.
VALUE: Final = "value"
MOST_FIELDS: Final = 1000


class Form(Enum):
    # An object in UTF-8; other fields are ignored, and each field may be absent or null. Times are
    # texts as in RFC 3339. Any other value is a bad record.
    JSON = "json"
    # UTF-8; any other value is a bad record.
    TEXT = "text"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    form: Form
    columns: tuple[tuple[str, Kind], ...]

    def to_json(self) -> Any:
        return {
            "form": self.form.value,
            "fields": {name: kind.value for name, kind in self.columns},
        }


def json_format(fields: Mapping[str, str]) -> Format:
    """Return the format of objects with these fields: names with kinds."""
    step = "json_format"
    require_names(step, fields)
    if not 1 <= len(fields) <= MOST_FIELDS:
        raise refused(step, f"{len(fields)} fields are named", f"name 1 to {MOST_FIELDS}")
    columns: Columns = {name: parse_kind(step, name, word) for name, word in fields.items()}
    return Format(form=Form.JSON, columns=tuple(columns.items()))


def text_format() -> Format:
    return Format(form=Form.TEXT, columns=((VALUE, Kind.TEXT),))


def bytes_format() -> Format:
    return Format(form=Form.BYTES, columns=((VALUE, Kind.BYTES),))
