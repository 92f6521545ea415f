"""A process that hangs is killed and restarted, unless it is on hold or was not watched."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brokers.supervisor import probe, starvation, vigil, watcher
from brokers.supervisor.watcher import State
from tests.brokers.supervisor.houses import House, running, within
from tests.brokers.supervisor.test_orders import ordered
from tests.fakes.clock import ManualClock

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vigil, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(vigil, "SILENT_SECONDS", 1.5)
    monkeypatch.setattr(watcher, "BEAT_SECONDS", 0.8)
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.5)


async def stopped(house: House, name: str) -> int:
    await house.audience.hears("all is healthy")
    pid = int((await house.component(name))["pid"])
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_each_kind_of_process_that_hangs_is_restarted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, web_port=0, rest_port=0, gateway_workers=1) as house:
            names = [each["name"] for each in (await house.status())["components"][1:]]
            pids = [await stopped(house, name) for name in names]

            for name in names:
                await house.audience.hears(name, "gives no sign of life", "it is killed")
                await house.audience.hears(name, "ready in", times=2)

            assert {"agent", "broker-1", "web", "collector", "gateway-1", "valkey"} <= {*names}
            after = [await house.component(name) for name in names]
            assert not {*pids} & {each["pid"] for each in after}
            assert all("without a sign of life" in each["last_end"]["how"] for each in after)
            assert {each["state"] for each in after} == {"healthy"}

    within(scenario)


def test_a_broker_on_hold_that_hangs_is_named_and_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2, stop_seconds=0.2) as house:
            await house.audience.hears("all is healthy")
            await ordered(house, "hold", "broker-1")
            held = await stopped(house, "broker-1")
            await stopped(house, "broker-2")

            await house.audience.hears("broker-2", "it is killed")
            await house.audience.hears("broker-2", "ready in", times=2)

            told = await house.component("broker-1")
            assert (told["pid"], told["state"]) == (held, "unresponsive")
            assert "has not answered for" in told["reason"]
            assert "on hold by alice" in told["reason"]
            assert "is restarted after" not in told["reason"]

    within(scenario)


class Hung:
    """A process without beats that does not answer, as the vigil knows it."""

    state = State.HEALTHY
    has_beats = False
    is_on_hold = False
    is_at_disk = False
    pid = 7

    def __init__(self, clock: ManualClock, starved_seconds: float = 0.0) -> None:
        self._clock = clock
        self.starved_seconds = starved_seconds
        self._heard_at = clock.monotonic()
        self.is_killed = False

    @property
    def silent_seconds(self) -> float:
        return self._clock.monotonic() - self._heard_at

    async def is_alive(self) -> bool:
        return False

    def note_alive(self) -> None:
        self._heard_at = self._clock.monotonic()

    def end_silent(self) -> None:
        self.is_killed = True


@pytest.mark.parametrize(("held_up_s", "is_killed"), [(0, True), (30, False)])
def test_silence_while_the_supervisor_could_not_run_does_not_count(
    held_up_s: int, *, is_killed: bool
) -> None:
    clock = ManualClock()
    hung = Hung(clock)
    watch = vigil.Vigil(lambda: [hung], clock)
    clock.advance(1000 * (held_up_s or 21))

    asyncio.run(watch.look(began=clock.monotonic() - held_up_s))

    assert hung.is_killed is is_killed


@pytest.mark.parametrize(
    ("silent_s", "starved_s", "is_killed"),
    [(2, 0, True), (2, 1, False), (30, 29, False), (200, 199, True)],
)
def test_silence_while_a_process_waited_for_a_core_does_not_count(
    silent_s: int, starved_s: int, *, is_killed: bool
) -> None:
    clock = ManualClock()
    starved = Hung(clock, starved_seconds=starved_s)
    watch = vigil.Vigil(lambda: [starved], clock)
    clock.advance(1000 * silent_s)

    asyncio.run(watch.look(began=clock.monotonic()))

    assert starved.is_killed is is_killed


def test_a_process_that_waits_for_a_disk_is_left_alone() -> None:
    clock = ManualClock()
    blocked = Hung(clock)
    blocked.is_at_disk = True
    watch = vigil.Vigil(lambda: [blocked], clock)
    clock.advance(200_000)

    asyncio.run(watch.look(began=clock.monotonic()))

    assert not blocked.is_killed
    assert not starvation.waits_for_disk(os.getpid())
    assert not starvation.waits_for_disk(None)


def test_the_kernel_counts_how_long_a_process_waits_for_a_core() -> None:
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    try:
        deadline = time.monotonic() + 30
        while starvation.waited_seconds(children[0].pid) < 0.3 and time.monotonic() < deadline:
            pass
        waited_s = starvation.waited_seconds(children[0].pid)
    finally:
        for child in children:
            child.kill()
            child.wait()

    assert waited_s >= 0.3
    assert starvation.waited_seconds(None) == 0.0
