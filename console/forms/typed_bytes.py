"""Converts typed text to bytes, as the form's choice of kind says, and back. Pure.

An explicit choice distinguishes a null, an empty value and a text, since a null deletes a key of a
compacted topic.
"""

import binascii
import json
import re
from base64 import b64decode, b64encode
from typing import Final, NoReturn

NULL: Final = "null"
EMPTY: Final = "empty"
TEXT: Final = "text"
JSON: Final = "json"
HEX: Final = "hex"
BASE64: Final = "base64"
KINDS: Final = (TEXT, JSON, NULL, EMPTY, HEX, BASE64)
# Characters that a text box changes, or that are invisible in it.
UNTYPABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# A few bytes are easier to read in hexadecimal digits.
SHORT: Final = 64


class NotTyped(ValueError):
    """The input does not match the chosen kind; the text says why, and what to do."""


def read(kind: str, typed: str, *, has_crlf: bool = False) -> bytes | None:
    """Return the bytes of a field. Browsers end each line with CR LF, whatever was pasted."""
    if kind in {NULL, EMPTY}:
        if typed.strip():
            raise NotTyped(
                f"{kind} is chosen, but {_shown(typed)} is typed: clear it, or choose text"
            )
        return None if kind == NULL else b""
    if not typed:
        raise NotTyped("nothing is typed: choose empty for 0 bytes, or null for no value at all")
    if kind == HEX:
        return _hex(typed)
    if kind == BASE64:
        return _base64(typed)
    if kind not in {TEXT, JSON}:
        raise NotTyped(f"{_shown(kind)} is not a form: choose one of {', '.join(KINDS)}")
    text = typed if has_crlf else typed.replace("\r\n", "\n")
    if kind == JSON:
        _check_json(text)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise NotTyped(
            f"character {error.start + 1} is half of a pair of surrogates: type it again"
        ) from None


def typed(data: bytes | None, *, is_line: bool = False) -> tuple[str, str]:
    """Return the kind and text that `read` turns into these bytes; a line loses its line ends."""
    if data is None:
        return NULL, ""
    if not data:
        return EMPTY, ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if UNTYPABLE.search(text) or (is_line and "\n" in text):
        return (HEX, data.hex()) if len(data) <= SHORT else (BASE64, b64encode(data).decode())
    try:
        _check_json(text)
    except NotTyped:
        return TEXT, text
    return (JSON if text.lstrip()[0] in "{[" else TEXT), text


def _hex(typed: str) -> bytes:
    digits = "".join(typed.split())
    if wrong := re.search(r"[^0-9a-fA-F]", digits):
        raise NotTyped(f"{wrong[0]!r} is not a hexadecimal digit: type 0-9 and a-f, as 00 ff 1a")
    if len(digits) % 2:
        raise NotTyped(f"{len(digits)} digits are half a byte too many: each byte is two digits")
    return bytes.fromhex(digits)


def _base64(typed: str) -> bytes:
    try:
        return b64decode("".join(typed.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise NotTyped(
            f"it is not base64: {error}; check that nothing is missing at its end"
        ) from (None)


def _check_json(text: str) -> None:
    try:
        json.loads(text, parse_int=_nothing, parse_float=_nothing, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise NotTyped(
            f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} in line {error.lineno}, "
            f"column {error.colno}: correct it, or choose text"
        ) from None
    except ValueError as error:
        raise NotTyped(f"it is not JSON: {error}: correct it, or choose text") from None
    except RecursionError:
        raise NotTyped("it is nested too deep to be checked: choose text") from None


def _nothing(_digits: str) -> None:
    """Discard numbers: they are sent as they were typed."""


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not one of its numbers")


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHORT else f"{text[:SHORT]}…")
