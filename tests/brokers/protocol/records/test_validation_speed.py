"""Checking a produced batch costs little more than its CRC, measured with the benchmark's calls."""

import time
from collections.abc import Callable, Iterator

import pytest

from bench.measure import best_cpu, quiet_collector
from bench.records import SIZES, check_calls, produced
from brokers.protocol.records.batch import CHECKED_POSITION, HEADER, Batch
from brokers.protocol.records.builder import varint
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.validation import NO_LIMIT, ProduceRules, inspecting
from tests.brokers.protocol.records.samples import batch_of

pytestmark = [pytest.mark.alone]

# A ratio instead of microseconds, so that it holds on any machine: the floor is 0.32 µs where the
# check takes 0.76, and 1.5 µs is the budget there.
MAX_OVER_FLOOR = 4.5
MAX_OVER_CRC = 1.25
# What one step may hold of a broker's only thread; the slowest takes a quarter of it here.
MAX_STEP_SECONDS = 0.005
PARTS = 20_000


@pytest.mark.parametrize("contender", ["check_produced", "idempotent"])
def test_a_tiny_batch_is_checked_within_its_budget(contender: str) -> None:
    batch = produced(SIZES["100 B"])
    calls = check_calls(SIZES["100 B"])

    cost = best_cpu(
        {
            "floor": lambda: (HEADER.unpack_from(batch), crc32c(batch[CHECKED_POSITION:])),
            contender: calls[contender],
        }
    )

    assert cost[contender] <= MAX_OVER_FLOOR * cost["floor"]


def test_a_large_batch_costs_its_crc_and_hardly_more() -> None:
    calls = check_calls(SIZES["1 MB"])

    cost = best_cpu({name: calls[name] for name in ("crc32c", "check_produced")})

    assert cost["check_produced"] <= MAX_OVER_CRC * cost["crc32c"]


def padded(number: int, size: int = 5) -> bytes:
    """Encode a number in more bytes than it needs, the slowest to read."""
    encoded = varint(number)
    return bytes([*(byte | 0x80 for byte in encoded), *[0x80] * size])[: size - 1] + b"\x00"


def slow_record(delta: int) -> bytes:
    content = b"\x00" + varint(2**62) + padded(delta) + padded(0) + padded(0) + padded(0)
    return padded(len(content)) + content


def many_records() -> Batch:
    count = PARTS
    body = b"".join(map(slow_record, range(count)))
    return batch_of(body, record_count=count, last_offset_delta=count - 1)


def many_headers() -> Batch:
    count = PARTS - 1
    content = bytes(3) + padded(0) * 2 + padded(count) + padded(0) * 2 * count
    return batch_of(
        varint(len(content)) + content, record_count=1, last_offset_delta=0, base_timestamp=0
    )


@pytest.mark.parametrize("make", [many_records, many_headers])
def test_the_slowest_batch_holds_the_broker_for_short_steps_only(
    make: Callable[[], Batch],
) -> None:
    records = make().buffer
    rules = ProduceRules(are_keys_required=True, timestamp_after_max_ms=NO_LIMIT)

    with quiet_collector():
        longest = min(longest_step(inspecting(records, rules, 0)) for _ in range(3))

    assert longest <= MAX_STEP_SECONDS


def longest_step(steps: Iterator[None]) -> float:
    """The most CPU between two pauses."""
    longest, before = 0.0, time.process_time()
    for _ in steps:
        now = time.process_time()
        longest, before = max(longest, now - before), now
    return longest
