"""What a coordinator takes for a request, a crowd and a group at rest, beside bare system calls.

The bench prints the figures and their targets; this test only notices when a change has lost them,
so it grants twice as much. The bare loop is the measure of the machine at this moment.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import broker as bare
from bench import groups
from bench.broker_targets import Target, floor
from bench.group_clients import Seen
from bench.groups import Size, steady_works
from brokers.server.daemon import GC_THRESHOLDS
from brokers.server.descriptors import for_clients
from tests.fakes.broker_thread import broker_beside
from tests.perf.brokers import one_broker

ROOM = 2
SECONDS = 0.5
# How many times the CPU of the bare loop's small request each may take: the targets of the bench,
# 60 µs for a heartbeat and 125 for a commit, on a machine where that loop takes 10 to 12.
LIMITS = {"heartbeat, classic": 5.0, "heartbeat, consumer": 5.0, "commit, one group": 10.0}
SMALL = Size(seconds=SECONDS, idle_groups=500)
MEMBERS = 500
# Of the broker, for all joins, the answers and the shares of a classic group: 0.1 to 0.15 s.
JOIN_CPU_SECONDS = 0.25
CROWD = 1_000
# What a process takes of the kernel at once, whatever for.
PAGES_MB = 3

pytestmark = [pytest.mark.campaign, pytest.mark.alone, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("groups") / "home"
    with one_broker(folder, {groups.DELAY: str(groups.SHORT_DELAY_MS)}) as (_cluster, target):
        target.make_topic(groups.TOPIC, 50)
        yield target


def test_a_steady_member_costs_little_more_than_its_system_calls(
    broker: Target, report: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare, "SECONDS", SECONDS)
    works = {work.name: work for work in steady_works(SMALL.connections)}

    with floor() as kernel:
        least = bare.bare_request(kernel).cpu_us
    found = {name: cost(broker, works[name].kind) for name in LIMITS}

    shown = ", ".join(f"{name} {cpu_us:.1f}" for name, cpu_us in found.items())
    report(f"µs of CPU: {shown}; the bare loop {least:.1f}")
    for name, cpu_us in found.items():
        assert cpu_us <= least * LIMITS[name] * ROOM, name


def cost(broker: Target, kind: str) -> float:
    """CPU µs of one request."""
    seen = ask(broker, kind=kind, members=SMALL.connections, seconds=SECONDS, name=kind)
    return seen.cpu / seen.requests * 1e6


def test_hundreds_of_members_settle_with_little_cpu(
    broker: Target, report: Callable[[str], None]
) -> None:
    seen = ask(broker, kind="join", members=MEMBERS, name="join")

    after = seen.asked_seconds + seen.settled_seconds
    report(f"{MEMBERS} members: {after:.2f} s after the delay, {seen.cpu:.2f} s of CPU")
    assert after <= groups.STABLE_SECONDS
    assert seen.cpu <= JOIN_CPU_SECONDS * ROOM


@pytest.mark.usefixtures("_as_in_a_broker", "all_descriptors")
def test_a_thousand_members_who_join_again_never_take_the_loop_for_long(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    defaults = {groups.DELAY: str(groups.SHORT_DELAY_MS)}
    with broker_beside(tmp_path, topics={groups.TOPIC: 1}, defaults=defaults) as beside:
        taken: list[float] = []
        beside.loop.call_soon_threadsafe(_watch, beside.loop, taken)
        running = beside.running
        target = Target(name="beside", host=running.host, port=running.port, pid=None)
        # Fewer where this process may not have so many connections.
        members = min(CROWD - 1, for_clients() * 3 // 4)
        ask(target, kind="rejoin", members=members, name="crowd")

    report(
        f"{members} members: {len(taken)} turns of the loop, "
        f"the longest {max(taken) * 1e3:.1f} ms of CPU"
    )
    assert max(taken) * 1e3 <= groups.STALL_MS


@pytest.fixture
def _as_in_a_broker() -> Iterator[None]:
    """Garbage is collected as a broker does it, and not all that the tests hold."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def _watch(loop: asyncio.AbstractEventLoop, taken: list[float]) -> None:
    """Notes the CPU that each turn takes: what others do on the machine is not in it."""
    turning: Any = loop
    turn = turning._run_once  # noqa: SLF001 - nobody else knows where a turn begins and ends

    def watched() -> None:
        began = time.thread_time()
        turn()
        taken.append(time.thread_time() - began)

    turning._run_once = watched  # noqa: SLF001 - see above


@pytest.mark.parametrize("is_consumer", [False, True])
def test_idle_groups_take_little_memory(
    broker: Target, report: Callable[[str], None], is_consumer: bool
) -> None:
    grown = groups.grown_megabytes(broker, SMALL, is_consumer=is_consumer)

    report(f"{SMALL.idle_groups} groups: {grown:.1f} MB")
    allowed = groups.IDLE_MB * SMALL.idle_groups / groups.IDLE_GROUPS
    assert grown <= allowed * ROOM + PAGES_MB


def ask(broker: Target, **job: object) -> Seen:
    return groups.seen_by(broker, **job)
