"""Formats a value as a line of a file."""

from typing import Any

from connectors.sdk.plain import to_json


def line_of(value: Any) -> bytes:
    """Return a value as a line with its end: texts and bytes as they are, others as JSON."""
    if isinstance(value, bytes):
        return value + b"\n"
    text = value if isinstance(value, str) else to_json(value)
    return text.encode(errors="replace") + b"\n"
