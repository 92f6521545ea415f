"""A whole broker's CPU for one request, beside the bare system calls in the same run.

The bench prints the figures and their targets; this test only notices when a change has lost them,
so it grants twice as much. The bare loop is the measure of the machine at this moment.
"""

from collections.abc import Callable, Iterator

import pytest

from bench import broker as bench
from bench.broker_targets import Target, floor, own_broker

ROOM = 2
SECONDS = 0.5
# How many times the CPU of the bare loop's small request each may take; the targets of the bench,
# 15, 30 and 20 µs, on a machine where that loop takes 10.
LIMITS = {
    ("produce", "100 B, idempotent, 16 connections"): 1.5,
    ("produce", "16 KB, 16 connections"): 3.0,
    # Of the bare loop that takes as many bytes: memory is faster beside system calls on one machine
    # than on another. Seen: 1.95.
    ("fetch", "16 KB, 4 connections"): 1.5,
    ("versions", "ApiVersions, 16 connections"): 1.5,
}
WORKS = {(work.kind, work.name): work for work in (*bench.PRODUCE, *bench.FETCH, *bench.VERSIONS)}

pytestmark = [pytest.mark.campaign, pytest.mark.alone, pytest.mark.slow]


@pytest.fixture(scope="module")
def targets() -> Iterator[tuple[Target, Target]]:
    with own_broker() as (broker, _seconds), floor() as kernel:
        yield broker, kernel


@pytest.mark.parametrize(("kind", "name"), LIMITS)
def test_a_request_costs_little_more_than_its_system_calls(
    targets: tuple[Target, Target],
    report: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    name: str,
) -> None:
    monkeypatch.setattr(bench, "SECONDS", SECONDS)
    broker, kernel = targets

    bare = bench.bare_bytes(kernel) if kind == "fetch" else bench.bare_request(kernel)
    figures = bench.measure(broker, WORKS[kind, name])

    report(f"{kind} {name}: {figures.cpu_us:.1f} µs of CPU, the bare loop {bare.cpu_us:.1f}")
    assert figures.cpu_us <= bare.cpu_us * LIMITS[kind, name] * ROOM
