"""Executes the orders for one broker of a home: start, stop, restart, hold, release, or its log.

A closed table: a verb without a row is never executed. A broker has one order at a time. An answer
is a sentence for people, under `error` if the order failed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from brokers.clock import Clock
from brokers.supervisor import holds, properties
from brokers.supervisor.components import LIMITS, Kind
from brokers.supervisor.control import Answer, Command, Request
from brokers.supervisor.holds import MAX_NAME, Hold
from brokers.supervisor.home import Home
from brokers.supervisor.log_tail import DEFAULT_LINES, read_tail
from brokers.supervisor.output import printable
from brokers.supervisor.watcher import KILL_SECONDS, State, Watcher

# A stop and a start at their longest, with some time to spare.
ORDER_SECONDS: Final = LIMITS[Kind.BROKER].stop + KILL_SECONDS + LIMITS[Kind.BROKER].ready + 5
# Larger than any file of a log dir's identity.
MAX_IDENTITY_BYTES: Final = 4096

Note = Callable[[Watcher, str, str], None]


class Orders:
    """See the module. Belongs to the supervisor's loop; `note` writes what was done to its log."""

    def __init__(self, home: Home, clock: Clock, note: Note) -> None:
        self._home = home
        self._clock = clock
        self._note = note
        self._watchers: Sequence[Watcher] = ()
        self._busy: set[str] = set()

    def begin(self, watchers: Sequence[Watcher]) -> None:
        """Take the brokers over, with the holds of an earlier run."""
        self._watchers = [each for each in watchers if each.component.kind is Kind.BROKER]
        held = holds.read_at_start(self._home.folder)
        for watcher in self._watchers:
            watcher.hold = held.get(watcher.component.name)
            watcher.broker_id = identity_of(self._home.log_dir(watcher.component.slot))

    def commands(self) -> Mapping[str, Command]:
        orders = {
            "start": self._start,
            "stop": self._stop,
            "restart": self._restart,
            "hold": self._hold,
            "release": self._release,
        }
        return {
            **{f"broker.{verb}": self._order(order) for verb, order in orders.items()},
            "broker.log": Command(run=self._log),
        }

    def _order(self, run: Callable[[Watcher, str], Awaitable[Answer]]) -> Command:
        async def one_at_a_time(request: Request) -> Answer:
            watcher = self._asked(request)
            if watcher is None:
                return self._unknown(request)
            name = watcher.component.name
            if name in self._busy:
                return {"error": f"another order for {name} is under way: wait for its end"}
            self._busy.add(name)
            try:
                by = printable(str(request.get("by") or "an unknown user"))[:MAX_NAME]
                return await run(watcher, by)
            except OSError as error:
                return {"error": f"nothing was done: {error}"}
            finally:
                self._busy.discard(name)

        return Command(run=one_at_a_time, seconds=ORDER_SECONDS)

    async def _stop(self, watcher: Watcher, by: str) -> Answer:
        if watcher.hold is not None and watcher.is_stopped:
            return done(watcher, f"was stopped already, by {watcher.hold.by}")
        self._keep_hold(watcher, by, is_stopped=True)
        self._note(watcher, "component.held", f"stopped by {by}")
        await watcher.end_life()
        return done(watcher, "is stopped, and stays stopped until it is started by hand")

    async def _start(self, watcher: Watcher, by: str) -> Answer:
        if not watcher.is_stopped and watcher.state is State.HEALTHY:
            return done(watcher, "runs already")
        if watcher.hold is not None:
            self._drop_hold(watcher)
        self._note(watcher, "component.let_go", f"started by {by}")
        if watcher.hold is not None:
            watcher.let_go()
        elif watcher.state is not State.STARTING:
            # It waits before its next attempt.
            await watcher.end_life()
        return await self._settled(watcher)

    async def _restart(self, watcher: Watcher, by: str) -> Answer:
        if watcher.hold is not None and watcher.pid is None:
            return {"error": f"{named(watcher)} is stopped, by {watcher.hold.by}: start it instead"}
        self._note(watcher, "component.restarted", f"restarted by {by}")
        await watcher.end_life()
        return await self._settled(watcher)

    async def _hold(self, watcher: Watcher, by: str) -> Answer:
        """Switch the restarts of a broker off: one that hangs or ends is left as it is."""
        if watcher.hold is not None and watcher.is_stopped:
            return {"error": f"{named(watcher)} is stopped, by {watcher.hold.by}: start it first"}
        if watcher.hold is not None:
            return done(watcher, f"is on hold already, by {watcher.hold.by}")
        self._keep_hold(watcher, by, is_stopped=False)
        self._note(watcher, "component.on_hold", f"put on hold by {by}")
        return done(watcher, "is on hold: it is watched, but not restarted until it is released")

    async def _release(self, watcher: Watcher, by: str) -> Answer:
        """Switch the restarts on again, and start a broker that ended meanwhile."""
        if watcher.hold is None:
            return done(watcher, "is not on hold")
        if watcher.is_stopped:
            return {"error": f"{named(watcher)} is stopped, by {watcher.hold.by}: start it instead"}
        self._drop_hold(watcher)
        self._note(watcher, "component.released", f"released by {by}")
        if watcher.pid is None:
            watcher.let_go()
            return await self._settled(watcher)
        watcher.hold = None
        return done(watcher, "is released: it is restarted if it hangs or ends")

    def _keep_hold(self, watcher: Watcher, by: str, *, is_stopped: bool) -> None:
        broker_id = -1 if watcher.broker_id is None else watcher.broker_id
        now_ms = self._clock.now_ms()
        hold = Hold(by=by, at_ms=now_ms, broker_id=broker_id, is_stopped=is_stopped)
        # Written first: the answer must still be true after a crash.
        self._write({**self._held(), watcher.component.name: hold})
        watcher.hold = hold

    def _drop_hold(self, watcher: Watcher) -> None:
        name = watcher.component.name
        self._write({key: hold for key, hold in self._held().items() if key != name})

    async def _settled(self, watcher: Watcher) -> Answer:
        """Return the result of a start, or that it is still in progress."""
        with suppress(TimeoutError):
            async with asyncio.timeout(watcher.component.limits.ready):
                await watcher.settled()
            if watcher.state is State.HEALTHY:
                return done(watcher, "serves")
            lines = "; ".join(watcher.last_lines[-1:])
            return {"error": f"{named(watcher)} {watcher.reason or 'was stopped'}: {lines}"}
        return done(watcher, "is still starting; a broker with much to recover takes minutes")

    async def _log(self, request: Request) -> Answer:
        watcher = self._asked(request)
        if watcher is None:
            return self._unknown(request)
        lines = request.get("lines")
        found = read_tail(
            self._home.log_file(watcher.component.name),
            lines=lines if type(lines) is int else DEFAULT_LINES,
            cursor=str(request.get("cursor") or ""),
        )
        return {"lines": found.lines, "cursor": found.cursor, "has_gap": found.has_gap}

    def _asked(self, request: Request) -> Watcher | None:
        """Return the broker that a request names, by its id in the cluster or by its component."""
        name = str(request.get("broker"))
        for watcher in self._watchers:
            if name == watcher.component.name:
                return watcher
        by_id = [each for each in self._watchers if str(each.broker_id) == name]
        return by_id[0] if by_id else None

    def _unknown(self, request: Request) -> Answer:
        there = ", ".join(named(watcher) for watcher in self._watchers) or "none"
        asked = printable(str(request.get("broker")))[:MAX_NAME]
        return {"error": f"{self._home.folder} has no broker {asked}; its brokers are {there}"}

    def _held(self) -> dict[str, Hold]:
        # Also those of brokers that this run lacks: it may have been started with fewer.
        with suppress(ValueError):
            return holds.read(self._home.folder)
        return {w.component.name: w.hold for w in self._watchers if w.hold is not None}

    def _write(self, held: Mapping[str, Hold]) -> None:
        holds.write(self._home.folder, held)


def named(watcher: Watcher) -> str:
    number = "" if watcher.broker_id is None else f" (broker {watcher.broker_id})"
    return f"{watcher.component.name}{number}"


def done(watcher: Watcher, what: str) -> dict[str, Any]:
    return {"sentence": f"{named(watcher)} {what}", "state": watcher.state.value}


def identity_of(log_dir: Path) -> int | None:
    """Return whose log dir this is, as far as its file says; only a broker checks it strictly."""
    try:
        with (log_dir / "meta.properties").open("rb") as file:
            said = properties.parse(file.read(MAX_IDENTITY_BYTES).decode("latin-1"))
    except (OSError, ValueError):
        return None
    number = said.get("node.id", said.get("broker.id", ""))
    return int(number) if number.isascii() and number.isdigit() else None
