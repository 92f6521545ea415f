"""The traffic of all workers of a home: each tells its own, and whoever asks adds them up.

Asked over the workers' own sockets, so it needs no Valkey and sees what each worker counts now.
"""

import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gateway.rest import process
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError
from gateway.rest.passed import HEADER, signed
from gateway.rest.router import NOBODY, Route
from gateway.rest.traffic import COUNTED, STEPS, Amounts
from gateway.rest.worker import Worker

PATH: Final = "/traffic"
# Where `mounts` has what workers ask each other.
ADDRESS: Final = f"/passed{PATH}"
# A worker answers within milliseconds; a page waits no longer than this for each that hangs.
ASK_SECONDS: Final = 0.5
# A gateway has a few workers per core; beyond this a page would wait too long for those that hang.
MAX_WORKERS: Final = 32
# A thousand callers in twenty steps are 1 MB.
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerTraffic:
    """What a caller did in the last steps, the oldest first; each has the amounts of COUNTED."""

    key: str
    open: int
    steps: tuple[Amounts, ...]

    def total(self, name: str) -> int:
        return max(0, sum(self.amounts(name)))

    def amounts(self, name: str) -> list[int]:
        place = COUNTED.index(name)
        return [step[place] for step in self.steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeTraffic:
    callers: tuple[CallerTraffic, ...]
    answered: tuple[str, ...]
    # Workers that told nothing, so what they serve is missing.
    silent: tuple[str, ...] = ()


class NoTraffic(Exception):
    """Nobody can be asked. The message is for a page."""


class Source(Protocol):
    """Where traffic is read from."""

    def read(self) -> HomeTraffic: ...


class Workers:
    """The worker of this process, and the others of its home over their sockets. From threads."""

    def read(self) -> HomeTraffic:
        try:
            here = process.worker()
        except ApiError as error:
            raise NoTraffic(str(error)) from None
        told = {here.name: here.traffic.recent()}
        silent = []
        for name in here.place.others()[:MAX_WORKERS]:
            answer = asked(str(here.place.socket_of(name)))
            if answer is None:
                silent.append(name)
            else:
                told[name] = answer
        return summed(told, silent)


def told_routes(worker: Worker) -> Sequence[Route]:
    """Return what another worker of the home asks."""

    async def tell(call: Call) -> None:
        await call.answer(OK, worker.traffic.recent())

    return [Route(method="GET", path=PATH, handler=tell)]


def asked(path: str) -> dict[str, Any] | None:
    """Return what the worker behind a socket tells; None where it tells nothing."""
    connection = http.client.HTTPConnection("worker", timeout=ASK_SECONDS)
    try:
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(ASK_SECONDS)
        connection.sock.connect(path)
        connection.request("GET", ADDRESS, headers={HEADER: signed(NOBODY, "GET", ADDRESS)})
        answer = connection.getresponse()
        body = answer.read(MAX_ANSWER_BYTES)
        told = json.loads(body) if answer.status == OK else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return told if isinstance(told, dict) else None


def summed(told: Mapping[str, Mapping[str, Any]], silent: Sequence[str] = ()) -> HomeTraffic:
    """Add up what workers told, whose steps have the same numbers."""
    now = max(int(one["step"]) for one in told.values())
    first = now - STEPS + 1
    open_of: dict[str, int] = {}
    steps_of: dict[str, list[list[int]]] = {}
    for one in told.values():
        for key, count in one["open"].items():
            open_of[key] = open_of.get(key, 0) + count
        for number, rows in one["steps"].items():
            place = int(number) - first
            if not 0 <= place < STEPS:
                continue
            for key, amounts in rows.items():
                steps = steps_of.setdefault(key, [[0] * len(COUNTED) for _ in range(STEPS)])
                steps[place] = [a + b for a, b in zip(steps[place], amounts, strict=True)]
    nothing = [(0,) * len(COUNTED)] * STEPS
    return HomeTraffic(
        callers=tuple(
            CallerTraffic(
                key=key,
                open=open_of.get(key, 0),
                steps=tuple(tuple(step) for step in steps_of.get(key, nothing)),
            )
            for key in sorted({*open_of, *steps_of})
        ),
        answered=tuple(told),
        silent=tuple(silent),
    )
