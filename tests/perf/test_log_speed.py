"""The log beside the bare system calls: what the design promises, with room for a busy machine.

The bench prints the figures; this test only notices when a change has lost them, so it grants half
as much again as the bench's own targets say.
"""

from collections.abc import Callable, Iterator

import pytest

from bench import log as bench

ROOM = 1.5
ROUNDS = 8
RECOVERY_BYTES = 32 * 1024 * 1024

pytestmark = [pytest.mark.alone, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with bench.scratch() as path:
        bench.warm(path)
        yield path


@pytest.mark.parametrize("size", bench.SIZES)
def test_an_append_costs_little_more_than_its_checksum_and_its_write(
    folder: str, report: Callable[[str], None], size: str
) -> None:
    costs = bench.append_costs(folder, bench.SIZES[size], ROUNDS)

    report(f"{size}: append {costs['append']:.2f} µs, crc32c + write {costs['bare']:.2f} µs")
    if size in bench.RATIO_LIMITS:
        assert costs["append"] <= costs["bare"] * bench.RATIO_LIMITS[size] * ROOM
    if size == "100 B":
        assert costs["append"] <= bench.TINY_APPEND_LIMIT_US * ROOM


def test_a_read_is_planned_within_microseconds(folder: str, report: Callable[[str], None]) -> None:
    costs = bench.lookup_costs(folder)

    report(", ".join(f"{name} {cost:.2f} µs" for name, cost in costs.items()))
    for name, cost in costs.items():
        limit = bench.DENSE_LIMIT_US if name.startswith("dense") else bench.COLD_LIMIT_US
        assert cost <= limit * ROOM


@pytest.mark.parametrize("size", bench.RECOVERY_LIMITS)
def test_recovery_reads_a_gigabyte_in_its_time(
    folder: str, report: Callable[[str], None], size: int
) -> None:
    seconds = bench.recovery_seconds(folder, size, RECOVERY_BYTES)

    per_gigabyte = seconds / RECOVERY_BYTES * 1e9
    report(f"batches of {size:,} B: {per_gigabyte:.1f} s per GB")
    assert per_gigabyte <= bench.RECOVERY_LIMITS[size] * ROOM
