"""Checking a produced batch costs little more than its CRC, measured with the benchmark's calls."""

import pytest

from bench.measure import best_cpu
from bench.records import SIZES, check_calls, produced
from brokers.protocol.records.batch import CHECKED_POSITION, HEADER
from brokers.protocol.records.crc32c import crc32c

pytestmark = [pytest.mark.alone]

# A ratio instead of microseconds, so that it holds on any machine: the floor is 0.32 µs where the
# check takes 0.76, and 1.5 µs is the budget there.
MAX_OVER_FLOOR = 4.5
MAX_OVER_CRC = 1.25


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
