"""Adds up the traffic of all workers of a home, each of which reports its own.

Asks over the workers' own sockets, so it needs no Valkey and sees present counts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from brokers.http.address import Address
from brokers.http.client import Connection
from brokers.http.protocol import NoResponse
from gateway.rest.codes import ApiError
from gateway.rest.passed import HEADER, signed
from gateway.rest.route import PASSED
from gateway.rest.router import NOBODY
from gateway.rest.traffic import COUNTED, PATH, STEPS, Amounts
from gateway.rest.worker import of_process

ADDRESS: Final = f"{PASSED}{PATH}"
# A worker answers within milliseconds; a page waits no longer for each one that hangs.
ASK_SECONDS: Final = 0.5
# A gateway has a few workers per core; with more, a page would wait too long for hanging ones.
MAX_WORKERS: Final = 32
# A thousand callers in twenty steps take 1 MB.
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerTraffic:
    """The traffic of a caller in the last steps, oldest first; each has the amounts of COUNTED."""

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
    # Workers that did not answer, so their traffic is missing.
    silent: tuple[str, ...] = ()


class NoTraffic(Exception):
    """No worker can be asked. The message is for a page."""


class Source(Protocol):
    """The source of traffic."""

    def read(self) -> HomeTraffic: ...


class Workers:
    """The worker of this process, and the others of its home over their sockets. For threads."""

    def read(self) -> HomeTraffic:
        try:
            here = of_process()
        except ApiError as error:
            raise NoTraffic(str(error)) from None
        reports = {here.name: here.traffic.recent()}
        silent = []
        for name in here.place.others()[:MAX_WORKERS]:
            report = ask(here.place.socket_of(name))
            if report is None:
                silent.append(name)
            else:
                reports[name] = report
        return add_up(reports, silent)


def ask(path: Path) -> dict[str, Any] | None:
    """Return the traffic of the worker behind a socket; None if it does not answer."""
    connection = Connection(
        Address(path=path), wait_seconds=ASK_SECONDS, max_bytes=MAX_ANSWER_BYTES
    )
    try:
        headers = {HEADER: signed(NOBODY, "GET", ADDRESS)}
        response = connection.exchange("GET", ADDRESS, headers=headers)
        report = json.loads(response.body) if response.status == OK else None
    except (NoResponse, ValueError):
        return None
    finally:
        connection.close()
    return report if isinstance(report, dict) else None


def add_up(reports: Mapping[str, Mapping[str, Any]], silent: Sequence[str] = ()) -> HomeTraffic:
    """Sum the traffic of workers, whose step numbers agree."""
    now = max(int(one["step"]) for one in reports.values())
    first = now - STEPS + 1
    open_of: dict[str, int] = {}
    steps_of: dict[str, list[list[int]]] = {}
    for one in reports.values():
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
        answered=tuple(reports),
        silent=tuple(silent),
    )
