"""Keeps one component running: starts it, waits until it serves, restarts it when it ends.

Knows for how long a process that served has given no sign of life; `vigil` decides what follows.

Does not depend on other components: those that need each other retry their connections, so all of
them may start at once and any of them may end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from brokers.beats import BEATS
from brokers.clock import Clock
from brokers.exit_codes import DISK_FAILED
from brokers.supervisor.child import Child, how_it_ended
from brokers.supervisor.components import Component, Gate, Kind, environment_of
from brokers.supervisor.holds import Hold
from brokers.supervisor.output import LogFile, Pump, is_telling, readable, structured
from brokers.supervisor.ports import is_taken
from brokers.supervisor.probe import answers_at, answers_ping, is_healthy, is_healthy_at
from brokers.supervisor.ready import ReadyLine
from brokers.supervisor.restarts import STABLE_SECONDS, Restarts
from brokers.supervisor.starvation import waited_seconds, waits_for_disk

# Between two probes of a starting process: the second start of all components takes only tenths of
# seconds.
PROBE_INTERVAL: Final = 0.05
# A killed process ends at once, unless it hangs in the kernel in a disk operation.
KILL_SECONDS: Final = 2
# A process beats once a second; one that has been late for longer than this does not answer.
BEAT_SECONDS: Final = 5.0
# The last output of a process is still in its pipe when it ends; if another process holds the pipe
# open, stop reading after this time.
DRAIN_SECONDS: Final = 1


class State(Enum):
    STARTING = "starting"
    HEALTHY = "healthy"
    RESTARTING = "restarting"  # waits before the next start
    CRASH_LOOP = "crash-loop"  # the same, after it ended several times in a row
    STOPPING = "stopping"
    STOPPED = "stopped"  # the home stops, or a user holds it


# How a process on a unix socket shows that it works. One that reports by a line when it serves may
# answer that its own sources are away.
PROBES: Final[Mapping[Gate, Callable[[Path], Awaitable[bool]]]] = {
    Gate.HTTP: is_healthy_at,
    Gate.LINE: answers_at,
    Gate.PING: answers_ping,
}
# The states that a start can end in, good or bad.
SETTLED: Final = frozenset({State.HEALTHY, State.RESTARTING, State.CRASH_LOOP, State.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """An event of a component that an operator wants to know."""

    component: Component
    event: str
    text: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a process ended without an order, and when."""

    how: str
    at_ms: int


class Watcher:
    """Keeps one component running until it is told to stop. Belongs to one event loop."""

    def __init__(
        self,
        component: Component,
        *,
        clock: Clock,
        environment: Mapping[str, str],
        folder: Path,
        log: LogFile,
        tell: Callable[[News], None],
        show: Callable[[Component, str], None],
    ) -> None:
        self.component = component
        self.state = State.STOPPED
        # The user's hold: the component is stopped, or runs and is not restarted.
        self.hold: Hold | None = None
        # It has ended, and is not started again by itself.
        self._rests = False
        # Why it is not healthy, in words; empty if it is.
        self.reason = ""
        self.restarts = Restarts()
        self.last_end: End | None = None
        self.broker_id: int | None = None
        self.port = component.port
        self.last_lines: list[str] = []
        # The values in the process's ready line.
        self.said: Mapping[str, Any] = {}
        self._inspection_port = 0
        self._clock = clock
        self._environment = environment
        self._folder = folder
        self._log = log
        self._tell = tell
        self._show = show
        self._child: Child | None = None
        self._is_over = False
        # Set to end the current process, whose end is then no failure.
        self._ending = asyncio.Event()
        # Wakes a held component: it was released, or everything stops.
        self._called = asyncio.Event()
        # Set while there is no process.
        self._gone = asyncio.Event()
        self._gone.set()
        # Set, and replaced, whenever the state changes.
        self._moved = asyncio.Event()
        self._finished = asyncio.Event()
        self._started_at = 0.0
        self._ready_at: float | None = None
        # When it last gave a sign of life, by a beat or by an answer.
        self._heard_at = 0.0
        # How long it had waited for a core by then.
        self._waited_s = 0.0
        self.has_beats = False
        # Why this supervisor killed it; empty if it did not.
        self._killed_because = ""

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    @property
    def is_stopped(self) -> bool:
        """Whether a user stopped it."""
        return self.hold is not None and self.hold.is_stopped

    @property
    def is_on_hold(self) -> bool:
        """Whether a user has switched its restarts off."""
        return self.hold is not None and not self.hold.is_stopped

    @property
    def is_kept_down(self) -> bool:
        """Whether a user's hold keeps it from being started."""
        return self.is_stopped or (self.is_on_hold and self._rests)

    @property
    def is_given_up(self) -> bool:
        """Whether it ends again and again, or is not started again by itself."""
        return self.restarts.is_crash_loop or self._rests

    @property
    def is_looping(self) -> bool:
        """Whether it ends again and again: one that serves now may do so for a moment only."""
        if not self.restarts.is_crash_loop or self.state in {State.STOPPING, State.STOPPED}:
            return False
        served = 0.0 if self._ready_at is None else self._clock.monotonic() - self._ready_at
        return self.state is not State.HEALTHY or served < STABLE_SECONDS

    @property
    def is_beating(self) -> bool:
        """Whether a process that promised beats sends them; others are believed."""
        return not self.has_beats or self._clock.monotonic() - self._heard_at < BEAT_SECONDS

    @property
    def silent_seconds(self) -> float:
        """For how long a process that served has given no sign of life."""
        return self._clock.monotonic() - self._heard_at if self.state is State.HEALTHY else 0.0

    @property
    def starved_seconds(self) -> float:
        """How long it waited for a core since its last sign of life."""
        return max(0.0, waited_seconds(self.pid) - self._waited_s)

    @property
    def is_at_disk(self) -> bool:
        """Whether it waits for a disk: killed, it would end no sooner, and recover its logs."""
        return waits_for_disk(self.pid)

    @property
    def cause(self) -> str:
        """The last complaint of the process that ended; empty if it made none."""
        for line in reversed(self.last_lines):
            if is_telling(line):
                entry = structured(line)
                return line if entry is None else str(entry.get("error") or readable(entry))
        return ""

    async def run(self) -> None:
        """Start the component, and restart it whenever it ends, until `stop`."""
        try:
            while not self._is_over:
                if not self.is_stopped and not self._rests:
                    self._called.clear()
                    self._ending.clear()
                    await self._live_once()
                else:
                    # One that rests keeps the state that says why.
                    if self.is_stopped:
                        self._move(State.STOPPED)
                    await self._called.wait()
                    self._called.clear()
        finally:
            self._log.close()
            self._move(State.STOPPED)
            self._finished.set()

    async def answers(self) -> bool:
        """Probe whether the process serves; one that neither answers nor beats is believed."""
        if not self.is_beating:
            return False
        path = self.component.socket
        if path is not None:
            return await PROBES[self.component.gate](path)
        port = self._inspection_port
        return not port or await is_healthy(self.component.host, port)

    async def is_alive(self) -> bool:
        """Tell whether the process works at all: its beat, which no stranger can hinder, decides.

        One that does not beat has a socket that only processes of this user reach.
        """
        path = self.component.socket
        if self.has_beats or path is None:
            return self.is_beating
        return await PROBES[self.component.gate](path)

    def note_alive(self) -> None:
        """Restart the time of its silence."""
        self._heard_at, self._waited_s = self._clock.monotonic(), waited_seconds(self.pid)

    def end_silent(self) -> None:
        """Kill a process that hangs, once; another one starts when the kernel has ended it."""
        is_killed = bool(self._killed_because)
        if self._child is not None and self.state is State.HEALTHY and not is_killed:
            seconds = f"{self.silent_seconds:.0f} s"
            self._killed_because = f"was killed after {seconds} without a sign of life"
            self._news("component.silent", f"gives no sign of life for {seconds}: it is killed")
            self._child.kill_group()

    async def stop(self) -> None:
        """End the component permanently."""
        self._is_over = True
        self._called.set()
        await self.end_life()
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_SECONDS):
                await self._finished.wait()

    async def end_life(self) -> None:
        """Terminate the process, kill it after its deadline, and return when it is gone.

        Another one starts at once unless the component is held, even if the component was waiting
        between two failed starts or rested after one.
        """
        if self._child is None:
            self._wake()
            return
        self._ending.set()
        self._move(State.STOPPING)
        self._child.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.component.limits.stop):
                await self._gone.wait()
            return
        self._news("component.killed", f"did not stop within {self.component.limits.stop:g} s")
        if self._child is not None:
            self._child.kill_group()
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_SECONDS):
                await self._gone.wait()

    def let_go(self) -> None:
        """End the hold of a component, and start it unless it runs."""
        self.hold = None
        if self._child is None:
            self._wake()

    def _wake(self) -> None:
        """Start a component without a process at once, unless it is held."""
        self._rests = False
        self._ending.set()
        self._called.set()

    async def settled(self) -> None:
        """Return when a requested start has succeeded or failed."""
        # The requested start begins when the loop gets to it.
        while self._ending.is_set() or self._called.is_set() or self.state not in SETTLED:
            await self._moved.wait()

    def kill(self) -> None:
        """Kill the component and all that it started."""
        self._is_over = True
        self._ending.set()
        self._called.set()
        if self._child is not None:
            self._child.kill_group()

    # --- one life ------------------------------------------------------------------------------

    async def _live_once(self) -> None:
        self._move(State.STARTING)
        self._started_at = self._clock.monotonic()
        self._ready_at = None
        self.has_beats, self._killed_because = False, ""
        environment = environment_of(
            self.component, port=self.port, inspection_port=self._inspection_port
        )
        try:
            child = Child(
                self.component.command,
                {**self._environment, **environment},
                folder=self._folder,
                inherited=self.component.inherited,
            )
        except OSError as error:
            await self._after_exit(f"could not be started: {error}")
            return
        self._child = child
        self._gone.clear()
        pump = Pump(child.output, self._log, self._on_line, now_ms=self._clock.now_ms)
        ready = ReadyLine(child.ready_pipe, self.note_alive)
        try:
            async with asyncio.TaskGroup() as life:
                gate = life.create_task(self._wait_until_ready(child, ready, pump))
                status = await child.exited
                gate.cancel()
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_SECONDS):
                        await pump.ended
        finally:
            child.kill_group()
            ready.close()
            pump.close()
            self._child = None
            self._gone.set()
        if self._ending.is_set():
            self.reason, self.last_lines = "", []
        else:
            self.last_lines = list(pump.last_lines)
            await self._after_exit(
                self._killed_because or how_it_ended(status), has_bad_disk=status == DISK_FAILED
            )

    async def _wait_until_ready(self, child: Child, ready: ReadyLine, pump: Pump) -> None:
        """Wait for the component's gate; its limits decide what happens if it is late."""
        limits = self.component.limits
        waiting = asyncio.ensure_future(self._gate(ready))
        try:
            done, _ = await asyncio.wait({waiting}, timeout=limits.ready)
            if not done:
                self._on_late(pump)
                if limits.restarts_when_late:
                    child.kill_group()
            self._on_ready(await waiting)
        finally:
            waiting.cancel()

    def _on_late(self, pump: Pump) -> None:
        self.reason = f"is not ready after {self.component.limits.ready:g} s"
        self._news("component.late", self.reason)
        self.last_lines = [line for line in pump.last_lines if is_telling(line)]
        # It has logged repeatedly what it waits for.
        for words in self.last_lines[-1:]:
            self._show_telling(words)

    async def _gate(self, ready: ReadyLine) -> Mapping[str, Any]:
        if self.component.gate is Gate.LINE:
            return await ready.said
        # The others do not report that they serve, so they are probed.
        while not await self.answers():  # noqa: ASYNC110
            await asyncio.sleep(PROBE_INTERVAL)
        return {}

    def _on_ready(self, said: Mapping[str, Any]) -> None:
        if self._ending.is_set():
            return
        self.note_alive()
        self._ready_at = self._heard_at
        self.said = said
        self.has_beats = bool(said.get(BEATS))
        if self.component.kind is Kind.BROKER:
            # It keeps these ports from now on, since clients know them.
            self.broker_id = number(said, "id", self.broker_id)
            self.port = number(said, "port", self.port) or 0
            self._inspection_port = number(said, "inspection_port", 0) or 0
        self.reason = ""
        self.last_lines = []
        self._move(State.HEALTHY)
        self._news("component.ready", f"ready in {self._ready_at - self._started_at:.1f} s")

    async def _after_exit(self, how: str, *, has_bad_disk: bool = False) -> None:
        has_bad_disk = has_bad_disk and self.component.kind is Kind.BROKER
        if has_bad_disk:
            how = "ended because its disk failed"
        now = self._clock.monotonic()
        served = None if self._ready_at is None else now - self._ready_at
        self.restarts = self.restarts.after_exit(served)
        self.reason = how
        self.last_end = End(how=how, at_ms=self._clock.now_ms())
        if served is None:
            # Reported once, not at every attempt.
            for line in self.last_lines if self.restarts.never_served == 1 else ():
                self._show_telling(line)
            # This port may have prevented it from serving: let it take another one.
            self._inspection_port = 0
            opens_port = self.component.kind is Kind.BROKER and self.port
            if opens_port and is_taken(self.component.host, self.port):
                self.reason += f", because another program has taken port {self.port}"
        if self.is_on_hold:
            self._rest(State.STOPPED, "it is on hold, so it is not restarted")
            return
        if has_bad_disk and served is None:
            self.reason += f"; `./samsa brokers start {self.component.name}` tries it again"
            self._rest(State.CRASH_LOOP, "it is not started again by itself")
            return
        is_loop = self.restarts.is_crash_loop
        self._move(State.CRASH_LOOP if is_loop else State.RESTARTING)
        delay = self.restarts.delay
        self._news("component.exited", f"{self.reason}; starting it again in {delay:.1f} s")
        await self._pause(delay)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next start; a user may order it now, or put the component on hold."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        if self.is_on_hold and not self._ending.is_set():
            self._rest(State.STOPPED, "it is on hold, so it is not restarted")

    def _rest(self, state: State, why: str) -> None:
        """Stay without a process until a user starts it."""
        self._rests = True
        self._move(state)
        self._news("component.exited", f"{self.reason}; {why}")

    def _on_line(self, line: str) -> None:
        # Foreign programs report each step of a stop in plain text; our own report what is wrong.
        if self._ending.is_set() and structured(line) is None:
            return
        # Until it serves, a process logs complaints about components that are not up yet. If it
        # ends before it serves, its last lines are shown.
        if self._ready_at is not None:
            self._show_telling(line)

    def _show_telling(self, line: str) -> None:
        if is_telling(line):
            entry = structured(line)
            self._show(self.component, line if entry is None else readable(entry))

    def _move(self, state: State) -> None:
        self.state = state
        self._moved.set()
        self._moved = asyncio.Event()

    def _news(self, event: str, text: str) -> None:
        self._tell(News(component=self.component, event=event, text=text, state=self.state))


def number(said: Mapping[str, Any], key: str, default: int | None) -> int | None:
    """Return a number from the ready line, or the value that is known without it."""
    value = said.get(key)
    return value if type(value) is int else default
