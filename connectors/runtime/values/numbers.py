"""Reproduces Java's numbers: widths that wrap, narrowing that saturates, and their texts.

Independent of schemas. A `float` is a double; functions for 32-bit floats have it in their name.
"""

import math
import struct
from decimal import Decimal
from typing import Final, TypeAlias

from connectors.sdk.errors import DataError

Number: TypeAlias = int | float | Decimal

# Jackson's limit; Python takes long to parse more digits.
MAX_DIGITS: Final = 1000
# BigDecimal holds the scale in 32 bits.
_MAX_EXPONENT: Final = (1 << 31) - 1
# Multiples of this power of ten have 64 zero bits at the end.
_ZEROS_OF_BITS: Final = 64
# Java writes numbers in this range without an exponent.
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7
# Enough digits to distinguish all 32-bit floats.
_FLOAT32_DIGITS: Final = 9


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def wrapped(number: int, bits: int) -> int:
    """Keep the lowest bits of a number, as Java narrows whole numbers."""
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def to_whole(number: Number, bits: int) -> int:
    """Narrow a number to `bits`, like `byteValue` to `longValue` of Java's Number."""
    if isinstance(number, float):
        # Java converts a floating point number to int or long first, and saturates it.
        widest = max(bits, 32)
        return wrapped(_saturated(number, widest), bits)
    if isinstance(number, Decimal) and unscaled_exponent(number) >= _ZEROS_OF_BITS:
        # Its lowest bits are all zero; computing it would fill the memory.
        return 0
    return wrapped(int(number), bits)


def _saturated(number: float, bits: int) -> int:
    half = 1 << (bits - 1)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return half - 1 if number > 0 else -half
    return min(max(int(number), -half), half - 1)


def float32(number: Number) -> float:
    """Round to the nearest 32-bit float."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def double_text(number: float) -> str:
    """Format a double like Java's `toString`."""
    return _java_text(repr(number), number)


def float32_text(number: float) -> str:
    """Format a 32-bit float like Java's `toString`: the shortest text that parses back to it."""
    for digits in range(1, _FLOAT32_DIGITS + 1):
        text = f"{number:.{digits}g}"
        if float32(float(text)) == number:
            return _java_text(repr(float(text)), float(text))
    return _java_text(repr(number), number)


def _java_text(text: str, number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        return text if "e" not in text else f"{number:f}"
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    adjusted = len(digits) + exponent - 1
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{adjusted}"


def json_number(number: float) -> str:
    """Format a double for JSON, which has no literals for NaN and infinities."""
    if math.isfinite(number):
        return repr(number)
    return f'"{double_text(number)}"'


def parse_decimal(text: str) -> Decimal:
    """Parse what Java's BigDecimal parses; DataError for anything else."""
    if len(text) > MAX_DIGITS:
        raise DataError(f"a number of {len(text)} characters, at most {MAX_DIGITS} are read")
    # Python would also accept underscores, and blanks around it.
    if not text or text.strip() != text or "_" in text:
        raise DataError(f"{text!r} is not a number")
    try:
        number = Decimal(text)
    except ArithmeticError as error:
        raise DataError(f"{text!r} is not a number") from error
    if not number.is_finite() or abs(number.adjusted()) > _MAX_EXPONENT:
        raise DataError(f"{text!r} is not a number")
    return number


def unscaled_exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    # NaN and infinities have a letter there.
    return exponent if isinstance(exponent, int) else 0


def unscaled(number: Decimal) -> tuple[int, int]:
    """Return the unscaled value and the scale of a decimal, as in BigDecimal."""
    if not number.is_finite():
        raise DataError(f"a decimal cannot hold {number}")
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)))
    return -whole if sign else whole, -exponent


def decimal_bytes(number: Decimal, scale: int) -> bytes:
    """Encode the unscaled value in two's complement, in as few bytes as possible."""
    whole, actual = unscaled(number)
    if actual != scale:
        raise DataError(
            f"decimal {number} has the scale {actual}, and the schema has {scale}: "
            "they must be equal"
        )
    length = (whole if whole >= 0 else ~whole).bit_length() // 8 + 1
    return whole.to_bytes(length, "big", signed=True)


# Bytes of the longest number that is accepted; 0.42 bytes per digit.
_MAX_DECIMAL_BYTES: Final = MAX_DIGITS * 5 // 12


def decimal_of(payload: bytes, scale: int) -> Decimal:
    if len(payload) > _MAX_DECIMAL_BYTES:
        raise DataError(f"a decimal of {len(payload)} bytes, at most {_MAX_DECIMAL_BYTES} are read")
    if not payload:
        raise DataError("a decimal of no bytes")
    # Arithmetic would round to the precision of the context; this does not.
    return Decimal(f"{int.from_bytes(payload, 'big', signed=True)}E{-scale}")
