"""Parses configuration values as Kafka does, and defines a row of a table of keys.

Knows no key. Kafka trims its input, takes any case of true and false, and numbers in decimal only;
a value that Kafka refuses must be refused here, since tools check for that.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from brokers import quantities


class ConfigType(IntEnum):
    """Kafka's numbers, as in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...]
# Returns the fault of a value, in words that follow "is", or None.
Rule: TypeAlias = Callable[[ConfigValue], str | None]

# The value has its effect in this server.
LIVE: Final = ""

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
# The longest value that is stored: no key needs more, and every broker gets all values.
MAX_VALUE_LENGTH: Final = 1024

# Characters of a value that a refusal repeats.
_SHOWN: Final = 100

_BITS: Final = {ConfigType.INT: 31, ConfigType.SHORT: 15, ConfigType.LONG: 63}
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,30}")
# The syntax of Java's floating point numbers, without the hexadecimal form.
_REAL: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """A broker key that a topic's key falls back to; `scale` converts to the topic's unit."""

    key: str
    scale: int = 1
    # Kafka can change it without a restart.
    is_dynamic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRow:
    """One key. `default` is as Kafka prints it; None if there is none."""

    key: str
    type: ConfigType
    default: str | None
    sentence: str
    rule: Rule | None = None
    # LIVE, or the reason why only the default is accepted.
    effect: str = LIVE
    # Every valid value is accepted although none has an effect.
    is_idle: bool = False
    # Of a topic's key: the broker's keys behind it, the strongest first.
    synonyms: tuple[Synonym, ...] = ()
    # Of a broker's key: it can be set while brokers run.
    is_dynamic: bool = False
    # Returned only if set or asked for by name: tools compare the set with Kafka's.
    is_hidden: bool = False

    def wrong(self, text: str) -> str | None:
        """Return the fault of a value, apart from its effect; None if it is valid."""
        if len(text) > MAX_VALUE_LENGTH:
            return f"has {len(text)} characters, {MAX_VALUE_LENGTH} are allowed"
        try:
            value = parse(self.type, text)
        except ValueError as error:
            return str(error)
        return None if self.rule is None else self.rule(value)

    def plain(self, text: str) -> str:
        """Return a value that a user typed as it is stored: a size or a duration is a number.

        Raises BadQuantity.
        """
        return quantities.plain(self.key, text) if self.type in _BITS else text

    def is_default(self, text: str) -> bool:
        return self.default is not None and (
            parse(self.type, text) == parse(self.type, self.default)
        )


def parse(kind: ConfigType, text: str) -> ConfigValue:
    """Parse a value; the ValueError has the reason, in words that follow the value."""
    text = text.strip()
    match kind:
        case ConfigType.BOOLEAN:
            return _parse_boolean(text)
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_whole(kind, text)
        case ConfigType.DOUBLE:
            return _parse_real(text)
        case ConfigType.LIST:
            return _parse_list(text)
        case _:
            return text


def at_least(least: int) -> Rule:
    return lambda value: None if _number(value) >= least else f"is below {least}"


def between(least: float, most: float, *, also: float | None = None) -> Rule:
    def check(value: ConfigValue) -> str | None:
        number = _number(value)
        if least <= number <= most or (also is not None and number == also):
            return None
        other = "" if also is None else f" nor {also}"
        return f"is not between {least} and {most}{other}"

    return check


def one_of(*allowed: str) -> Rule:
    return lambda value: None if value in allowed else f"is not one of {', '.join(allowed)}"


def items_of(*allowed: str) -> Rule:
    def check(value: ConfigValue) -> str | None:
        assert isinstance(value, tuple)
        strange = [item for item in value if item not in allowed]
        return f"names {strange[0][:_SHOWN]!r}, known are {', '.join(allowed)}" if strange else None

    return check


def throttled_replicas(value: ConfigValue) -> str | None:
    """Refuse values other than `*` and pairs of partition and broker."""
    assert isinstance(value, tuple)
    if value == ("*",) or all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in value):
        return None
    return "is neither * nor a list of partition:broker"


def _number(value: ConfigValue) -> float:
    assert isinstance(value, int | float)
    return value


def _parse_boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("is neither true nor false")
    return text.lower() == "true"


def _parse_whole(kind: ConfigType, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("is not a whole number")
    number = int(text)
    bits = _BITS[kind]
    if not -(2**bits) <= number < 2**bits:
        raise ValueError(f"does not fit into {bits + 1} bits")
    return number


def _parse_real(text: str) -> float:
    found = _REAL.fullmatch(text)
    number = float(found[1]) if found else math.nan
    if not math.isfinite(number):
        raise ValueError("is not a number")
    return number


def _parse_list(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise ValueError("has an empty item")
    # Drop duplicates; keep the order.
    return tuple(dict.fromkeys(items))
