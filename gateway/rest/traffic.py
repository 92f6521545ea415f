"""Counts the traffic of callers in this process: calls, records, bytes, errors, open streams.

Numbers only grow, except for open streams; the steps of the last minutes are counted too. A long
call is counted while it runs. Bare calls are counted on the loop and views in their threads.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import attrgetter
from threading import Lock
from typing import Final

from gateway.rest.calls import Call
from gateway.rest.route import Route

# A row takes some hundred bytes. Only authenticated callers have one, so these are tokens and users
# of one installation; a script that creates a token per run must not fill the memory.
MAX_CALLERS: Final = 1_000
# The sum of callers beyond that number. No caller's key starts with it.
OTHERS: Final = "*"
# Refused calls: of unknown callers, or beyond a limit. No user has an empty name.
STRANGERS: Final = "user:"
# The last minutes, in steps fine enough for a sparkline. With all callers busy, they take 2 MB.
STEP_S: Final = 15
STEPS: Final = 20
# The amounts of a step, in this order.
COUNTED: Final = ("requests", "records", "errors", "bytes_in", "bytes_out")
NOTHING: Final = (0,) * len(COUNTED)
# By which other workers of the home ask for counts.
PATH: Final = "/traffic"

Amounts = tuple[int, ...]


@dataclass(slots=True)
class Counts:
    """The counts of one caller since the process started."""

    requests: int = 0
    records: int = 0
    errors: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    # Open streams and sockets.
    open: int = 0


class Counter:
    """The traffic of one process, by caller key. Thread-safe, except where noted.

    Steps are numbered by a clock that the processes of a host share.
    """

    def __init__(
        self,
        *,
        max_callers: int = MAX_CALLERS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_callers = max_callers
        self._monotonic = monotonic
        self._rows: dict[str, Counts] = {}
        # Oldest first, with each active caller.
        self._steps: dict[int, dict[str, Amounts]] = {}
        # The counted part of each running call; there are as many as connections.
        self._under_way: dict[Call, Amounts] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._lock = Lock()

    def begin(self, call: Call) -> None:
        """Count a call from now on, on the loop, until `count` reports its end."""
        with self._lock:
            self._under_way[call] = NOTHING
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(STEP_S, self._tick)

    def count(self, call: Call) -> None:
        """Count a completed call."""
        with self._lock:
            self._settle(call)
            self._under_way.pop(call, None)
            self._add(call.caller.key, (1, 0, 0, 0, 0))
            if not self._under_way and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def add(
        self,
        key: str,
        *,
        requests: int = 0,
        records: int = 0,
        errors: int = 0,
        bytes_in: int = 0,
        bytes_out: int = 0,
    ) -> None:
        with self._lock:
            self._add(key, (requests, records, errors, bytes_in, bytes_out))

    @contextmanager
    def opened(self, key: str) -> Iterator[None]:
        """Count a stream or a socket as open during the block."""
        with self._lock:
            row = self._rows[self._place(key)]
            row.open += 1
        try:
            yield
        finally:
            with self._lock:
                row.open -= 1

    def rows(self) -> Mapping[str, Mapping[str, int]]:
        """Return all present counts as JSON values."""
        with self._lock:
            self._settle_all()
            return {key: asdict(row) for key, row in self._rows.items()}

    def recent(self) -> dict[str, object]:
        """Return the open counts, and the last steps with their numbers, as JSON values."""
        with self._lock:
            self._settle_all()
            now = self._step()
            steps = {step: rows for step, rows in self._steps.items() if step > now - STEPS}
            return {
                "step": now,
                "open": {key: row.open for key, row in self._rows.items() if row.open},
                "steps": {str(step): dict(rows) for step, rows in steps.items()},
            }

    def _tick(self) -> None:
        with self._lock:
            self._settle_all()
            self._timer = asyncio.get_running_loop().call_later(STEP_S, self._tick)

    def _settle_all(self) -> None:
        for call in self._under_way:
            self._settle(call)

    def _settle(self, call: Call) -> None:
        """Count what a call did since it was last counted."""
        told = (0, call.records, call.errors, call.bytes_in, call.bytes_out)
        before = self._under_way.get(call, NOTHING)
        if told != before:
            self._add(call.caller.key, _sum(told, (-amount for amount in before)))
        if call in self._under_way:
            self._under_way[call] = told

    def _add(self, key: str, amounts: Amounts) -> None:
        key = self._place(key)
        row = self._rows[key]
        for name, amount in zip(COUNTED, amounts, strict=True):
            setattr(row, name, getattr(row, name) + amount)
        number = self._step()
        if number not in self._steps:
            self._steps[number] = {}
            while len(self._steps) > STEPS:
                del self._steps[next(iter(self._steps))]
        step = self._steps[number]
        step[key] = _sum(step.get(key, NOTHING), amounts)

    def _place(self, key: str) -> str:
        """Return the key under which a caller is counted, and ensure its row."""
        if key not in self._rows and len(self._rows) >= self._max_callers:
            key = OTHERS
        self._rows.setdefault(key, Counts())
        return key

    def _step(self) -> int:
        return int(self._monotonic() // STEP_S)


class PassedTraffic:
    """Counts the records of passed calls. The worker that passed them on counts the rest."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def begin(self, call: Call) -> None:
        """Do nothing: a passed call is counted at its end."""

    def count(self, call: Call) -> None:
        if call.records:
            self._counter.add(call.caller.key, records=call.records)


def _sum(one: Amounts, other: Iterable[int]) -> Amounts:
    return tuple(a + b for a, b in zip(one, other, strict=True))


async def answer_counts(counter: Counter, call: Call) -> None:
    """Answer another worker of the home with the counts of this one."""
    await call.answer(200, counter.recent())


PASSED_ROUTES: Final = (
    Route(method="GET", path=PATH, room=attrgetter("traffic"), handler=answer_counts),
)
