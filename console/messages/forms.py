"""Shows bytes as text, by a table of decoders with a fallback. Pure.

Text is shown as written: a JSON document is checked and never reformatted, so that a 64-bit number
stays exact. Bytes that the requested form cannot decode are shown as hexadecimal digits, with the
reason.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from struct import Struct
from typing import Any, Final, NoReturn

from console.messages import msgpack

# Bytes of a key or a value in a list; a longer one is cut, and can be downloaded.
MAX_SHOWN: Final = 16_384
# Bytes of a header's value.
MAX_SHOWN_HEADER: Final = 1_024
# A longer document is not checked to be JSON: that would take more than 3 ms.
MAX_CHECKED: Final = 256 * 1024
# The prefix of serializers with a schema registry: a zero byte, and a schema id.
SCHEMA_PREFIX: Final = 5
# Registries count from 1; a larger number is more likely other data.
MAX_SCHEMA_ID: Final = 10_000_000
# Characters that do not occur in text.
BINARY: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")


class Form(Enum):
    """The forms that a browser can request."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"
    MSGPACK = "msgpack"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Bytes in readable form. `note` says why in this form, or why not in the requested one."""

    kind: str
    text: str = ""
    size: int = 0
    is_cut: bool = False
    schema_id: int | None = None
    note: str = ""


class Unreadable(ValueError):
    """The bytes do not have this form; the text says why."""


NULL: Final = Shown(kind="null")
EMPTY: Final = Shown(kind="empty")


def show(data: bytes | None, form: Form = Form.AUTO, *, most: int = MAX_SHOWN) -> Shown:
    """Return bytes in a form, or in another one with the reason."""
    if data is None:
        return NULL
    if not data:
        return EMPTY
    if form is Form.AUTO:
        return _auto(data, most)
    try:
        return DECODERS[form](data, most)
    except Unreadable as reason:
        return replace(_hex(data, most), note=f"not {form.value}: {reason}")


def _auto(data: bytes, most: int) -> Shown:
    found = _plain(data, most)
    if found is None and _has_schema_prefix(data):
        schema_id = int.from_bytes(data[1:SCHEMA_PREFIX])
        rest = data[SCHEMA_PREFIX:]
        inner = _plain(rest, most) or replace(
            _hex(rest, most), note="the bytes behind the schema's number, which need that schema"
        )
        return replace(inner, size=len(data), schema_id=schema_id)
    if found is None and msgpack.is_container(data):
        try:
            return _msgpack(data, most)
        except Unreadable:
            pass
    return found or replace(_hex(data, most), note=_why_hex(data))


def _plain(data: bytes, most: int) -> Shown | None:
    """Return bytes as JSON or text; None if they are neither."""
    if data[:1] in b"{[ \t\r\n":
        try:
            return _json(data, most)
        except Unreadable:
            pass
    try:
        return _text(data, most)
    except Unreadable:
        return None


def _has_schema_prefix(data: bytes) -> bool:
    if data[0] != 0 or len(data) <= SCHEMA_PREFIX or len(data) == 8:
        return False
    return 0 < int.from_bytes(data[1:SCHEMA_PREFIX]) <= MAX_SCHEMA_ID


def _why_hex(data: bytes) -> str:
    if len(data) in NUMBER_BY_SIZE:
        form, number = NUMBER_BY_SIZE[len(data)]
        return f"no text; as {form.value} it is {number.unpack(data)[0]}"
    return "no text: it is not UTF-8, or has control characters"


def _json(data: bytes, most: int) -> Shown:
    if len(data) > MAX_CHECKED:
        if data[:1] not in b"{[" or data[-1:] not in b"}]":
            raise Unreadable(f"it has {len(data):,} bytes, and does not look like it")
        note = f"not checked to be JSON: it has {len(data):,} bytes"
        return replace(_text(data, most), kind="json", note=note)
    try:
        document = json.loads(
            data.decode(), parse_int=_nothing, parse_float=_nothing, parse_constant=_refuse
        )
    except RecursionError:
        raise Unreadable("it is nested too deep") from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    kind = "json" if isinstance(document, dict | list) else "text"
    return _written(kind, data.decode(), len(data), most)


def _nothing(_digits: str) -> None:
    """Discard numbers: they are not needed, and a long one would take time to parse."""


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _text(data: bytes, most: int) -> Shown:
    part = data[: most + 4]
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        # A character that was cut apart is no error.
        if len(part) == len(data) or error.start < len(part) - 4:
            raise Unreadable(f"byte {error.start} is not UTF-8") from None
        text = part[: error.start].decode()
    if BINARY.search(text):
        raise Unreadable("it has control characters")
    return _written("text", text, len(data), most, is_cut=len(data) > most)


def _forced_text(data: bytes, most: int) -> Shown:
    """Return text on request, even with control characters."""
    part = data[: most + 4]
    text = part.decode("utf-8", "replace")
    note = "bytes that are not UTF-8 were replaced" if "\ufffd" in text[:most] else ""
    return replace(_written("text", text, len(data), most, is_cut=len(data) > most), note=note)


def _hex(data: bytes, most: int) -> Shown:
    part = data[: most // 2]
    return Shown(kind="hex", text=part.hex(), size=len(data), is_cut=len(part) < len(data))


def _base64(data: bytes, most: int) -> Shown:
    # A multiple of three bytes, so that the shown text is valid by itself.
    part = data[: most // 4 * 3]
    text = b64encode(part).decode()
    return Shown(kind="base64", text=text, size=len(data), is_cut=len(part) < len(data))


def _msgpack(data: bytes, most: int) -> Shown:
    if len(data) > MAX_CHECKED:
        raise Unreadable(f"it has {len(data):,} bytes, {MAX_CHECKED:,} are decoded")
    try:
        text = msgpack.text_of(data)
    except msgpack.NotMsgpack as error:
        raise Unreadable(str(error)) from None
    return _written("msgpack", text, len(data), most)


def _number(form: Form, number: Struct) -> Callable[[bytes, int], Shown]:
    def decode(data: bytes, _most: int) -> Shown:
        if len(data) != number.size:
            raise Unreadable(f"it has {len(data)} bytes, and {form.value} has {number.size}")
        kind = form.value.rstrip("0123456789")
        return Shown(kind=kind, text=str(number.unpack(data)[0]), size=len(data))

    return decode


def _written(kind: str, text: str, size: int, most: int, *, is_cut: bool = False) -> Shown:
    return Shown(kind=kind, text=text[:most], size=size, is_cut=is_cut or len(text) > most)


# Big-endian, as Kafka's own serializers write them.
NUMBERS: Final[Mapping[Form, Struct]] = {
    Form.INT8: Struct(">b"),
    Form.INT16: Struct(">h"),
    Form.INT32: Struct(">i"),
    Form.INT64: Struct(">q"),
    Form.FLOAT32: Struct(">f"),
    Form.FLOAT64: Struct(">d"),
}
NUMBER_BY_SIZE: Final = {
    4: (Form.INT32, NUMBERS[Form.INT32]),
    8: (Form.INT64, NUMBERS[Form.INT64]),
}
DECODERS: Final[Mapping[Form, Callable[[bytes, int], Shown]]] = {
    Form.JSON: _json,
    Form.TEXT: _forced_text,
    Form.HEX: _hex,
    Form.BASE64: _base64,
    Form.MSGPACK: _msgpack,
    **{form: _number(form, number) for form, number in NUMBERS.items()},
}


def fields_of(shown: Shown) -> dict[str, Any]:
    """Return the fields of a shown part in a line of the stream."""
    return {
        "kind": shown.kind,
        "text": shown.text,
        "bytes": shown.size,
        "is_cut": shown.is_cut,
        "schema_id": shown.schema_id,
        "note": shown.note,
    }
