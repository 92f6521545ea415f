"""Formats values as readable JSON by the meaning of their schemas, for targets that take text."""

import base64
import json
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from connectors.sdk.errors import DataError
from connectors.sdk.schemas import Struct


def to_json(value: Any) -> str:
    """Return a value as JSON: numbers with scale as texts, times by ISO 8601, bytes in base64."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the value cannot be written as JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Convert a value that JSON does not support."""
    if isinstance(value, Struct):
        return {field.name: value[field.name] for field in value.schema.fields}
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")
