"""The flusher: requests of a turn share a flush, logs are flushed in parallel, failures are
final.
"""

import asyncio
import errno
import threading
from collections.abc import Callable
from typing import Any

import pytest

from brokers.replication import flusher as module
from brokers.replication import threads
from brokers.replication.flusher import Flusher
from brokers.storage.errors import LogDirFailed, OutOfSpace
from tests.brokers.replication.parts import until
from tests.fakes.clock import ManualClock


class Ticket:
    """A fake flush; `run` waits for the gate, and then succeeds or fails as set."""

    def __init__(self, log: "Log") -> None:
        self._log = log

    def run(self) -> None:
        self._log.entered.release()
        self._log.gate.wait(10)
        if self._log.fault is not None:
            raise self._log.fault


class Log:
    def __init__(self) -> None:
        self.is_flush_asked = False
        self.is_flushing = False
        self.is_flush_early = False
        self.is_dirty = True
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.fault: Exception | None = None
        self.begun = self.finished = 0
        self.on_finish: Callable[[], None] | None = None

    def begin_flush(self) -> Any:
        if not self.is_dirty:
            return None
        self.begun += 1
        return Ticket(self)

    def finish_flush(self, ticket: Any) -> None:
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.finished += 1
        if self.on_finish is not None:
            self.on_finish()


def run(test: Callable[[Flusher, list[LogDirFailed]], Any], **options: Any) -> None:
    async def with_flusher() -> None:
        failures: list[LogDirFailed] = []
        loop = asyncio.get_running_loop()
        flusher = Flusher(loop, clock=ManualClock(), on_log_dir_failed=failures.append, **options)
        flusher.start()
        await test(flusher, failures)
        await flusher.stop()
        assert flusher.running == 0

    asyncio.run(with_flusher())


async def asked_early(flusher: Flusher) -> Log:
    """A log with one flush that is about to end, and a next one with which little has come."""
    log = Log()
    log.gate.clear()
    flusher.ask(log)
    await until(lambda: log.is_flushing)
    flusher.ask(log)
    log.is_flush_early = True
    log.gate.set()
    return log


def test_all_that_a_turn_asks_for_is_one_flush() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        log = Log()
        for _ in range(5):
            flusher.ask(log)
        await until(lambda: log.finished == 1)
        assert log.begun == 1

    run(test)


def test_what_is_asked_for_during_a_flush_is_flushed_once_more() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        log = Log()
        log.gate.clear()
        flusher.ask(log)
        await until(lambda: log.is_flushing)
        flusher.ask(log)
        flusher.ask(log)
        log.gate.set()
        await until(lambda: log.finished == 2)
        assert log.begun == 2

    run(test)


@pytest.mark.parametrize("turns", [0, 5])
def test_an_early_flush_waits_some_turns_and_then_for_nobody(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    monkeypatch.setattr(module, "EARLY_TURNS", turns)

    async def test(flusher: Flusher, _failures: Any) -> None:
        log = await asked_early(flusher)
        await until(lambda: log.finished == 1)
        waited = 0
        while log.begun == 1:
            await asyncio.sleep(0)
            waited += 1
        assert turns <= waited <= turns + 2
        await until(lambda: log.finished == 2)

    run(test)


def test_an_early_flush_begins_at_once_when_enough_has_come() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        log = await asked_early(flusher)
        await until(lambda: log.finished == 1)

        flusher.begin(log)
        assert (log.begun, log.is_flush_asked) == (2, False)
        await until(lambda: log.finished == 2)
        await flusher.stop()
        assert log.begun == 2

    run(test)


def test_a_flush_may_begin_before_its_turn_is_over_and_leaves_others_in_line() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        first, second = Log(), Log()
        flusher.ask(first)
        flusher.ask(second)
        flusher.begin(second)
        assert (first.begun, second.begun) == (0, 1)
        await until(lambda: first.finished == second.finished == 1)

    run(test)


def test_a_flush_that_finds_no_thread_or_was_not_asked_for_does_not_begin() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        running, waiting, other = Log(), Log(), Log()
        running.gate.clear()
        flusher.ask(running)
        await until(lambda: running.is_flushing)
        flusher.ask(waiting)
        flusher.begin(waiting)
        flusher.begin(other)
        assert (waiting.begun, other.begun) == (0, 0)
        running.gate.set()
        await until(lambda: waiting.finished == 1)
        assert other.begun == 0

    run(test, max_parallel=1)


def test_a_failure_forgets_flushes_that_are_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EARLY_TURNS", 1_000_000)

    async def test(flusher: Flusher, failures: list[LogDirFailed]) -> None:
        log, bad = await asked_early(flusher), Log()
        await until(lambda: log.finished == 1)
        bad.fault = LogDirFailed("x", "fsync", OSError(errno.EIO, "bad"))
        flusher.ask(bad)
        await until(lambda: bool(failures))

        async with asyncio.timeout(10):
            await flusher.stop()

        assert log.begun == 1

    run(test)


def test_a_flush_that_cannot_begin_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.001)

    async def test(flusher: Flusher, failures: Any) -> None:
        log = Log()
        begin_flush, refusals = log.begin_flush, [OutOfSpace("x", "fsync")]

        def begin() -> Any:
            if refusals:
                raise refusals.pop()
            return begin_flush()

        monkeypatch.setattr(log, "begin_flush", begin)
        flusher.ask(log)
        flusher.begin(log)
        await until(lambda: log.finished == 1)
        assert failures == []

    run(test)


def test_a_bug_of_one_that_waited_does_not_lose_the_flush_that_was_asked_for() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        log = await asked_early(flusher)

        def bug() -> None:
            log.on_finish = None
            raise ZeroDivisionError

        log.on_finish = bug
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: told.append(what))
        await until(lambda: log.finished == 2)
        assert len(told) == 1

    run(test)


def test_a_system_without_a_thread_to_give_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "RETRY_SECONDS", 0.001)
    start, refusals = threading.Thread.start, [RuntimeError("can't start new thread")]

    def sometimes(thread: threading.Thread) -> None:
        if refusals:
            raise refusals.pop()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", sometimes)

    async def test(flusher: Flusher, failures: Any) -> None:
        log = Log()
        flusher.ask(log)
        async with asyncio.timeout(10):
            await flusher.stop()
        assert (log.finished, failures, refusals) == (1, [], [])

    run(test)


def test_a_stop_waits_for_flushes_that_are_early() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        log = await asked_early(flusher)
        await flusher.stop()
        assert log.finished == 2

    run(test)


def test_a_log_without_anything_to_flush_is_finished_without_a_thread() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        log = Log()
        log.is_dirty = False
        flusher.ask(log)
        await until(lambda: log.finished == 1)
        assert log.begun == 0

    run(test)


def test_as_many_logs_as_allowed_are_flushed_side_by_side() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        logs = [Log() for _ in range(5)]
        for log in logs:
            log.gate.clear()
            flusher.ask(log)
        await until(lambda: flusher.running == 3)
        assert sum(log.begun for log in logs) == 3
        for log in logs:
            log.gate.set()
        await until(lambda: all(log.finished for log in logs))

    run(test, max_parallel=3)


def test_a_refused_flush_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.001)

    async def test(flusher: Flusher, failures: Any) -> None:
        log = Log()
        log.fault = OutOfSpace("x", "fsync")
        flusher.ask(log)
        await until(lambda: log.finished == 1)
        assert log.begun == 2
        assert failures == []

    run(test)


def test_after_a_failure_nothing_is_flushed_any_more() -> None:
    async def test(flusher: Flusher, failures: list[LogDirFailed]) -> None:
        bad, later = Log(), Log()
        bad.fault = LogDirFailed("x", "fsync", OSError(errno.EIO, "bad"))
        flusher.ask(bad)
        await until(lambda: bool(failures))
        flusher.ask(later)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (len(failures), later.begun) == (1, 0)

    run(test)


def test_stopping_finishes_what_was_asked_for() -> None:
    async def test(flusher: Flusher, _failures: Any) -> None:
        logs = [Log() for _ in range(20)]
        for log in logs:
            flusher.ask(log)
        await flusher.stop()
        assert all(log.finished == 1 for log in logs)

    run(test, max_parallel=2)


def test_a_failure_leaves_nothing_for_a_stop_to_wait_for() -> None:
    async def test(flusher: Flusher, failures: list[LogDirFailed]) -> None:
        bad, asked_again = Log(), Log()
        for log in (bad, asked_again):
            log.gate.clear()
            flusher.ask(log)
        await until(lambda: flusher.running == 2)
        flusher.ask(asked_again)
        bad.fault = LogDirFailed("x", "fsync", OSError(errno.EIO, "bad"))
        bad.gate.set()
        await until(lambda: bool(failures))
        asked_again.gate.set()

        async with asyncio.timeout(10):
            await flusher.stop()

        assert (asked_again.begun, asked_again.finished) == (1, 1)

    run(test)


def test_a_second_life_begins_awake() -> None:
    async def story() -> None:
        flusher = Flusher(
            asyncio.get_running_loop(),
            clock=ManualClock(),
            on_log_dir_failed=lambda _failure: None,
        )
        flusher.start()
        await flusher.stop()
        # A thread may set it just before it ends, when everything was collected already.
        flusher._is_collecting = True  # noqa: SLF001 - no test can stop a thread just there

        flusher.start()
        log = Log()
        flusher.ask(log)
        async with asyncio.timeout(10):
            await flusher.stop()

        assert log.finished == 1

    asyncio.run(story())
