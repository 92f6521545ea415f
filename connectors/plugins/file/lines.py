"""What a value looks like as a line of a file."""

import base64
import json
from datetime import date, time
from decimal import Decimal
from typing import Any

from connectors.sdk.errors import DataError
from connectors.sdk.schemas import Struct


def line_of(value: Any) -> bytes:
    """Return a value as a line with its end: texts and bytes as they are, all else as JSON."""
    if isinstance(value, bytes):
        return value + b"\n"
    if isinstance(value, str):
        return value.encode(errors="replace") + b"\n"
    try:
        told = json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the value cannot be written as JSON: {error}") from error
    return told.encode(errors="replace") + b"\n"


def _plain(value: Any) -> Any:
    """Return what JSON has for a value that it does not have."""
    if isinstance(value, Struct):
        return {field.name: value[field.name] for field in value.schema.fields}
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} is no type of JSON")
