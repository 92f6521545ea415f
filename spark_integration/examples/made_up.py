"""Generates clicks and orders for the examples, some of them invalid on purpose. Pure.

Randomness and time are arguments, so that a test can repeat the result.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

PAGES: Final = ("/", "/prices", "/docs", "/docs/start", "/sign-up")
USERS: Final = 50
# Per hundred clicks: how many are repeated, are late, or are invalid.
REPEATED: Final = 5
LATE: Final = 3
NO_CLICK: Final = 2
PRODUCTS: Final = (
    ("p1", "teapot", 24.9),
    ("p2", "cup", 7.5),
    ("p3", "kettle", 39.0),
    ("p4", "tray", 18.25),
)
# Missing in the table, until a reader of the page adds it.
UNKNOWN_PRODUCT: Final = "p5"
NO_ORDER: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUp:
    """A generated record, and its time."""

    key: bytes | None
    value: bytes
    at_ms: int


def clicks(chance: Random, moments: Iterator[datetime]) -> Iterator[MadeUp]:
    """Yield a click for each moment, and repeat some of them."""
    for moment in moments:
        drawn = chance.randrange(100)
        user = f"user-{chance.randrange(USERS)}"
        if drawn < NO_CLICK:
            yield MadeUp(key=user.encode(), value=b"no click", at_ms=millis(moment))
            continue
        # From a phone that was offline.
        is_late = drawn < NO_CLICK + LATE
        at = moment - (timedelta(hours=3) if is_late else timedelta(seconds=chance.randrange(5)))
        value = as_json(
            id=f"{chance.getrandbits(64):016x}", user=user, page=chance.choice(PAGES), at=text(at)
        )
        click = MadeUp(key=user.encode(), value=value, at_ms=millis(moment))
        yield click
        if drawn >= 100 - REPEATED:
            yield click


def orders(chance: Random, moments: Iterator[datetime]) -> Iterator[MadeUp]:
    for moment in moments:
        number = f"{chance.getrandbits(32):08x}"
        if chance.randrange(100) < NO_ORDER:
            yield MadeUp(key=number.encode(), value=b"no order", at_ms=millis(moment))
            continue
        known = [product for product, _name, _price in PRODUCTS]
        # One order in ten is for the last product.
        product = chance.choice(known) if chance.randrange(10) else UNKNOWN_PRODUCT
        value = as_json(id=number, product=product, count=chance.randint(1, 5), at=text(moment))
        yield MadeUp(key=number.encode(), value=value, at_ms=millis(moment))


def products(moment: datetime) -> Iterator[MadeUp]:
    for number, name, price in PRODUCTS:
        value = as_json(name=name, price=price)
        yield MadeUp(key=number.encode(), value=value, at_ms=millis(moment))


def spread(end: datetime, *, count: int, over: timedelta) -> Iterator[datetime]:
    """Yield `count` moments at equal distances, the last of which is the end."""
    for number in range(1, count + 1):
        yield end - over + over * number / count


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_json(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
