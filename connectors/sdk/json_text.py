"""Formats a value as one line of JSON, like Kafka Connect's JSON without a schema.

Bytes are base64, a Decimal the base64 of its unscaled bytes, a Date its days, a Time its
milliseconds, a Timestamp its milliseconds since 1970; a Struct is an object of all its fields.
"""

import base64
import datetime
import json
from decimal import Decimal
from typing import Any, Final

from connectors.sdk.errors import DataError
from connectors.sdk.schemas import Struct

EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
MILLISECOND: Final = datetime.timedelta(milliseconds=1)
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def write(value: Any) -> str:
    """Return the text of a value; DataError if JSON cannot represent it."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"JSON cannot hold this value: {error}") from error


def milliseconds(moment: datetime.datetime) -> int:
    """Return the milliseconds since 1970 of an aware time."""
    return (moment - EPOCH) // MILLISECOND


def unscaled(number: Decimal) -> bytes:
    """Return the unscaled value of a decimal as a signed number in as few bytes as possible."""
    sign, digits, _ = number.as_tuple()
    whole = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    bits = (whole if whole >= 0 else ~whole).bit_length()
    return whole.to_bytes(bits // 8 + 1, "big", signed=True)


def _plain(value: Any) -> Any:
    match value:
        case Struct():
            return {field.name: value.values.get(field.name) for field in value.schema.fields}
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case Decimal():
            if not value.is_finite():
                raise TypeError(f"{value} is not a number")
            return base64.b64encode(unscaled(value)).decode("ascii")
        # A time with a date is also a date, so it comes first.
        case datetime.datetime():
            return milliseconds(value)
        case datetime.date():
            return value.toordinal() - EPOCH_DAY
        case datetime.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return seconds * 1000 + value.microsecond // 1000
    raise TypeError(f"values of type {type(value).__name__} have no JSON")


# Python would write NaN and infinity, which are not valid JSON.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
)
