"""Defines the content of `./samsa demo`: topics, their records and rates, and groups.

Pure: time is seconds since the start, and randomness is an argument.
"""

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from gateway.kafka.values import NewRecord

PREFIX: Final = "samsa-demo."
MINUTE_MS: Final = 60_000
MEBIBYTE: Final = 1024 * 1024

Rate = Callable[[float], float]
Making = Callable[[Random, int], NewRecord]


def steady(per_second: float) -> Rate:
    return lambda _seconds: per_second


def wave(low: float, high: float, *, period_s: float) -> Rate:
    """Return a rate that oscillates between two values, starting with the low one."""
    middle, half = (low + high) / 2, (high - low) / 2
    return lambda seconds: middle - half * math.cos(2 * math.pi * seconds / period_s)


def bursts(quiet: float, burst: float, *, every_s: float, for_s: float) -> Rate:
    """Return a low rate with a burst in the last seconds of each period."""
    return lambda seconds: burst if seconds % every_s >= every_s - for_s else quiet


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A topic, and the program that writes to it."""

    topic: str
    partitions: int
    writer: str  # its client id
    rate: Rate
    record: Making
    configs: Mapping[str, str] = field(default_factory=dict)


class Habit(Enum):
    """How a group behaves."""

    READS = "reads and commits"
    LEAVES = "reads, then leaves and does not come back"
    STICKS = "commits the same offsets again and again"
    REWINDS = "goes back to the beginning from time to time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """A group, and the rate of each of its members."""

    group: str
    topics: tuple[str, ...]
    members: int
    rate: Rate
    habit: Habit = Habit.READS
    # When a group leaves, or how often it seeks back.
    turn_s: float = 0.0


# --- records ----------------------------------------------------------------------------------

PAGES: Final = ("/", "/shop", "/shop/shoes", "/cart", "/checkout", "/account", "/help")
CITIES: Final = ("Berlin", "København", "Kraków", "Lisboa", "São Paulo", "東京", "Zürich")
LEVELS: Final = ("INFO", "INFO", "INFO", "WARN", "ERROR")
# Larger than the largest exact integer of a float: a console that rounds would show it.
FIRST_ORDER: Final = 9_007_199_254_740_993


def click(chance: Random, number: int) -> NewRecord:
    user = chance.randrange(5_000)
    value = {
        "user": f"u{user}",
        "page": chance.choice(PAGES),
        "ms": chance.randrange(5, 900),
        "number": number,
    }
    return NewRecord(key=b"u%d" % user, value=_json(value))


def order(chance: Random, number: int) -> NewRecord:
    items = [
        {"sku": f"SKU-{chance.randrange(400):03d}", "quantity": chance.randrange(1, 4)}
        for _ in range(chance.randrange(1, 4))
    ]
    value = {
        "order": {"id": FIRST_ORDER + number, "city": chance.choice(CITIES)},
        "items": items,
        "total_cents": chance.randrange(500, 40_000),
    }
    trace = b"%032x" % chance.getrandbits(128)
    headers = (("trace", trace), ("source", b"checkout"))
    return NewRecord(key=b"%d" % (FIRST_ORDER + number), value=_json(value), headers=headers)


def payment(chance: Random, number: int) -> NewRecord:
    """Return a payment as MessagePack: a map of two short texts to a number and a flag."""
    amount = struct.pack(">I", chance.randrange(500, 40_000))
    is_paid = b"\xc3" if chance.random() < 0.97 else b"\xc2"
    value = b"\x82\xa6amount\xce" + amount + b"\xa4paid" + is_paid
    return NewRecord(key=b"%d" % (FIRST_ORDER + number), value=value)


def reading(chance: Random, number: int) -> NewRecord:
    """Return a temperature as a big-endian double."""
    value = 21 + 4 * math.sin(number / 300) + chance.gauss(0, 0.3)
    return NewRecord(key=b"sensor-%02d" % chance.randrange(24), value=struct.pack(">d", value))


def customer(chance: Random, number: int) -> NewRecord:
    """Return a customer, or a tombstone of one; each begins with the id of a schema."""
    who = chance.randrange(300)
    if chance.random() < 0.05:
        return NewRecord(key=b"customer-%d" % who, value=None)
    value = {"id": who, "city": chance.choice(CITIES), "seen": number}
    return NewRecord(key=b"customer-%d" % who, value=b"\0" + struct.pack(">I", 7) + _json(value))


def line(chance: Random, number: int) -> NewRecord:
    level = chance.choice(LEVELS)
    text = f"{level} request {number} answered in {chance.randrange(2, 800)} ms"
    return NewRecord(key=None, value=text.encode())


def reject(chance: Random, number: int) -> NewRecord:
    """Return data that a program could not read: invalid text, an empty value, markup."""
    value = (bytes(chance.randrange(256) for _ in range(24)), b"", b"<b>not markup</b>")[number % 3]
    headers = (("error", b"could not be parsed"), ("attempt", b"3"))
    return NewRecord(key=b"order-%d" % number, value=value, headers=headers)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# --- the play ---------------------------------------------------------------------------------


def _topic(name: str) -> str:
    return PREFIX + name


CLICKS, ORDERS, PAYMENTS = _topic("clicks"), _topic("orders"), _topic("payments")
READINGS, CUSTOMERS = _topic("sensor-readings"), _topic("customers")
LOGS, REJECTS = _topic("logs"), _topic("dead-letters")

SCENES: Final = (
    Scene(
        topic=CLICKS,
        partitions=6,
        writer="web-shop",
        rate=wave(40, 400, period_s=120),
        record=click,
    ),
    Scene(
        topic=ORDERS,
        partitions=3,
        writer="checkout",
        rate=wave(10, 90, period_s=75),
        record=order,
    ),
    Scene(
        topic=PAYMENTS,
        partitions=3,
        writer="payment-service",
        rate=bursts(5, 120, every_s=45, for_s=8),
        record=payment,
    ),
    Scene(
        topic=READINGS,
        partitions=4,
        writer="sensor-bridge",
        rate=steady(50),
        record=reading,
        configs={"retention.bytes": str(64 * MEBIBYTE)},
    ),
    Scene(
        topic=CUSTOMERS,
        partitions=2,
        writer="crm-sync",
        rate=steady(4),
        record=customer,
        configs={"cleanup.policy": "compact"},
    ),
    Scene(
        topic=LOGS,
        partitions=1,
        writer="web-shop",
        rate=wave(20, 60, period_s=60),
        record=line,
        # Records are deleted before the group `archive` has read them.
        configs={"retention.ms": str(10 * MINUTE_MS), "segment.ms": str(MINUTE_MS)},
    ),
    Scene(topic=REJECTS, partitions=1, writer="checkout", rate=steady(0.5), record=reject),
)


def falls_behind_and_catches_up(seconds: float) -> float:
    return 30.0 if seconds % 90 < 50 else 600.0


AUDIENCES: Final = (
    Audience(group=_topic("analytics"), topics=(CLICKS,), members=2, rate=steady(600)),
    Audience(group=_topic("billing"), topics=(ORDERS, PAYMENTS), members=2, rate=steady(400)),
    Audience(
        group=_topic("search-index"), topics=(CLICKS,), members=1, rate=falls_behind_and_catches_up
    ),
    # Always less than the rate of writes.
    Audience(group=_topic("fraud-check"), topics=(READINGS,), members=1, rate=steady(30)),
    Audience(
        group=_topic("mailer"),
        topics=(ORDERS,),
        members=1,
        rate=steady(400),
        habit=Habit.LEAVES,
        turn_s=20,
    ),
    Audience(
        group=_topic("ledger"),
        topics=(PAYMENTS,),
        members=1,
        rate=steady(1),
        habit=Habit.STICKS,
    ),
    Audience(
        group=_topic("reports"),
        topics=(CUSTOMERS,),
        members=1,
        rate=steady(40),
        habit=Habit.REWINDS,
        turn_s=180,
    ),
    Audience(
        group=_topic("archive"),
        topics=(LOGS,),
        members=1,
        rate=steady(400),
        habit=Habit.LEAVES,
        turn_s=15,
    ),
)
