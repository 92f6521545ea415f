"""Kinds of decimals and money, by `decimal.handling.mode`."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from connectors.plugins.postgres.capture.event_settings import Decimals, EventSettings
from connectors.plugins.postgres.capture.kinds import Kind, plain
from connectors.sdk.schemas import DECIMAL, Field, Schema, Struct, Type

PRECISION: Final = "connect.decimal.precision"
VARIABLE: Final = Schema(
    type=Type.STRUCT,
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
    fields=(
        Field(name="scale", schema=Schema(type=Type.INT32)),
        Field(name="value", schema=Schema(type=Type.BYTES)),
    ),
)
# Numbers that a decimal cannot hold, as `decimal.handling.mode=string` writes them.
SPECIAL: Final = {
    "NaN": "NAN",
    "Infinity": "POSITIVE_INFINITY",
    "-Infinity": "NEGATIVE_INFINITY",
}
# The type modifier of NUMERIC: ((precision << 16) | scale) + 4, where the scale has 11 bits and
# a sign.
HEADER: Final = 4
SCALE_SIGN: Final = 1024
SCALE_MASK: Final = 2047
MONEY_SCALE: Final = 2


def numeric(modifier: int, settings: EventSettings) -> Kind:
    precision, scale = _digits(modifier)
    if settings.decimals is not Decimals.PRECISE:
        return _inexact(settings.decimals, lambda text: text, scale)
    if scale is None:
        return Kind(schema=VARIABLE, value=_variable, fallback=_variable("0"))
    return _decimal(scale, lambda text: text, {PRECISION: str(precision)})


def money(_modifier: int, settings: EventSettings) -> Kind:
    if settings.decimals is not Decimals.PRECISE:
        return _inexact(settings.decimals, _amount, MONEY_SCALE)
    return _decimal(MONEY_SCALE, _amount, {})


def _inexact(mode: Decimals, text_of: Callable[[str], str], scale: int | None) -> Kind:
    if mode is Decimals.DOUBLE:
        return plain(Type.FLOAT64, lambda text: float(text_of(text)))

    def value(text: str) -> str:
        if text in SPECIAL:
            return SPECIAL[text]
        number = _number(text_of(text))
        return str(number if scale is None else _scaled(number, scale))

    return replace(plain(Type.STRING, value), fallback=value("0"))


def _decimal(scale: int, text_of: Callable[[str], str], parameters: dict[str, str]) -> Kind:
    def value(text: str) -> Decimal:
        return _scaled(_number(text_of(text)), scale)

    schema = Schema(
        type=Type.BYTES,
        name=DECIMAL,
        version=1,
        parameters={"scale": str(scale), **parameters},
    )
    return Kind(schema=schema, value=value, fallback=_scaled(Decimal(0), scale))


def _variable(text: str) -> Struct:
    """Return a number with as few fraction digits as it needs."""
    number = _number(text)
    whole, _, fraction = f"{number:f}".partition(".")
    fraction = fraction.rstrip("0")
    return Struct(VARIABLE, {"scale": len(fraction), "value": _bytes(int(whole + fraction))})


def _number(text: str) -> Decimal:
    if text in SPECIAL:
        raise ValueError(f"a decimal cannot hold {text}: use another decimal.handling.mode")
    try:
        return Decimal(text)
    except ArithmeticError as error:
        raise ValueError("no number") from error


def _scaled(number: Decimal, scale: int) -> Decimal:
    """Format a number with the scale of its column, to which PostgreSQL has rounded it."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "special numbers were handled before"
    missing = exponent + scale
    if missing >= 0:
        return Decimal((sign, (*digits, *(0,) * missing), -scale))
    if any(digits[missing:]):
        raise ValueError(f"it has more than {scale} fraction digits")
    return Decimal((sign, digits[:missing] or (0,), -scale))


def _amount(text: str) -> str:
    """Parse an amount in locale C, such as -$1,234.56."""
    return text.replace("$", "").replace(",", "")


def _digits(modifier: int) -> tuple[int, int | None]:
    if modifier < 0:
        return 0, None
    told = modifier - HEADER
    scale = told & SCALE_MASK
    return (told >> 16) & 0xFFFF, (scale ^ SCALE_SIGN) - SCALE_SIGN


def _bytes(number: int) -> bytes:
    """Return the fewest bytes that hold a number with its sign, as Java's BigInteger does."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)
