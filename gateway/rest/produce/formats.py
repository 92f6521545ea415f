"""Decodes keys, values, headers and timestamps of records from JSON into bytes.

Pure. Numbers keep their text: rounding 30 digits would change a program's data.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from gateway.rest.codes import ApiError, Code


class Format(Enum):
    BINARY = "BINARY"
    STRING = "STRING"
    JSON = "JSON"


# Formats that need a schema registry; JSON in their place would be misread.
OF_REGISTRY: Final = frozenset({"AVRO", "JSONSCHEMA", "PROTOBUF"})
NULL: Final = b"null"
RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?P<fraction>\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)"
)
EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
SHOWN: Final = 80
# A whole number as text, as Java programs send it.
DIGITS: Final = re.compile(r"\+?[0-9]{1,19}")
# Escapes of surrogates: whole pairs, and halves.
SURROGATES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
HALF_CHARS: Final = 6
# How much of a body is searched for the cause of an error.
SEARCHED_BYTES: Final = 1024 * 1024


def refused(what: str) -> ApiError:
    return ApiError(Code.BAD_PAYLOAD, f"Payload error. {what}")


def format_of(name: str | None, field: str) -> Format:
    """Return the format of a record's key or value."""
    if name is None:
        raise ApiError(
            Code.BAD_SCHEMA,
            f"{field}.type is missing, and there is no schema registry to look it up in: say "
            "BINARY, STRING or JSON",
        )
    if name in OF_REGISTRY:
        raise ApiError(
            Code.BAD_SCHEMA,
            f"{field}.type is {name}, which needs a schema registry, and this gateway has none: "
            "send BINARY, STRING or JSON",
        )
    try:
        return Format(name)
    except ValueError:
        raise refused(f"{field}.type is {name[:SHOWN]!r}: say BINARY, STRING or JSON") from None


def whole(given: object, most: int) -> int | None:
    """Return a number from 0 to `most`, which may be written as text; None for anything else."""
    if isinstance(given, str) and DIGITS.fullmatch(given):
        given = int(given)
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    return given if is_whole and 0 <= given <= most else None  # type: ignore[operator,return-value]


def why_no_json(text: bytes, error: Exception) -> str:
    """Return what is wrong with a text that a decoder refuses."""
    found = SURROGATES.finditer(text[:SEARCHED_BYTES])
    half = next((one[0] for one in found if len(one[0]) == HALF_CHARS), None)
    if half is None:
        return str(error)
    return (
        f"{half.decode()} is half of a surrogate pair, which UTF-8 cannot express: escape both"
        " halves, or send the character itself"
    )


def decoded(data: msgspec.Raw, form: Format, field: str) -> bytes | None:
    """Return the bytes of a key or value; null is null in every format."""
    raw = bytes(data)
    if not raw or raw == NULL:
        return None
    if form is Format.JSON:
        return msgspec.json.format(raw, indent=-1)
    text = text_of(raw, form, field)
    return text.encode() if form is Format.STRING else binary(text, field)


def text_of(raw: bytes, form: Format, field: str) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.ValidationError:
        shown = raw[:SHOWN].decode(errors="replace")
        raise refused(
            f"{field} is {shown}, and {form.value} takes a string: quote it, or send JSON"
        ) from None


def binary(text: str, field: str) -> bytes:
    """Decode base64; invalid characters are refused, never skipped."""
    try:
        return b64decode(text.encode("ascii"), validate=True)
    except (NotBase64, UnicodeEncodeError) as error:
        raise refused(f"{field} is {text[:SHOWN]!r}, which is not base64: {error}") from None


def milliseconds(text: str) -> int:
    """Return an RFC 3339 time as Kafka's timestamp; digits below a millisecond are cut off."""
    found = RFC_3339.fullmatch(text)
    try:
        if found is None:
            raise ValueError("not a time of RFC 3339")  # noqa: TRY301 - told as the others below
        fraction = found["fraction"] or ""
        time = datetime.fromisoformat(text.upper().replace(fraction, "", 1))
    except ValueError as error:
        raise refused(
            f"timestamp is {text[:SHOWN]!r}: write it like 2026-01-31T12:00:00.123Z ({error})"
        ) from None
    since = time - EPOCH
    seconds = since.days * 86_400 + since.seconds
    value = seconds * 1_000 + int(fraction[1:4].ljust(3, "0"))
    # The client library takes 0 for "now".
    if value <= 0:
        raise refused(f"timestamp is {text!r}: it must be after 1970-01-01T00:00:00Z")
    return value


def time_text(milliseconds: int) -> str:
    """Return Kafka's timestamp as an RFC 3339 time with milliseconds."""
    seconds, rest = divmod(milliseconds, 1_000)
    try:
        time = datetime.fromtimestamp(seconds, EPOCH.tzinfo)
    except (ValueError, OverflowError, OSError):
        return "9999-12-31T23:59:59.999Z"
    return f"{time:%Y-%m-%dT%H:%M:%S}.{rest:03}Z"
