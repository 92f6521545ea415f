"""The end of a process is seen at once."""

import asyncio
import os
import subprocess
import sys

from tests.database import project_home

project_home()

from brokers.controlplane.agent.processes import identity_of, watch_process  # noqa: E402

SLEEPER = [sys.executable, "-c", "input()"]


def test_a_process_that_ends_is_told_of_once() -> None:
    async def story() -> None:
        ended = asyncio.Event()
        stop = watch_process(identity_of(child.pid), ended.set)
        assert stop is not None
        child.kill()
        async with asyncio.timeout(10):
            await ended.wait()
        stop()

    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as child:
        asyncio.run(story())


def test_a_watch_that_was_ended_tells_nothing() -> None:
    async def story() -> None:
        ended = asyncio.Event()
        before = len(os.listdir("/proc/self/fd"))
        stop = watch_process(identity_of(child.pid), ended.set)
        assert stop is not None
        stop()
        child.kill()
        child.wait()
        assert len(os.listdir("/proc/self/fd")) == before
        assert not ended.is_set()

    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as child:
        asyncio.run(story())


def test_a_process_that_is_dead_already_cannot_be_watched() -> None:
    async def story() -> None:
        assert watch_process(process, lambda: None) is None

    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as child:
        process = identity_of(child.pid)
        child.kill()
    asyncio.run(story())
    assert identity_of(child.pid) == ""


def test_another_process_of_the_same_pid_is_not_taken_for_the_one_that_died() -> None:
    async def story() -> None:
        boot, pid, started = identity_of(os.getpid()).split(":")
        for other in (f"{boot}:{pid}:{int(started) - 1}", f"another-boot:{pid}:{started}"):
            assert watch_process(other, lambda: None) is None

    asyncio.run(story())
