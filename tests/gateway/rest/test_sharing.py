"""Limits of workers that share a server, and what others may write there."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest import sharing
from gateway.rest.codes import ApiError
from gateway.rest.limits import Limits, Rates
from gateway.rest.shares import Wants
from gateway.rest.sharing import MAX_NEWS_BYTES, MAX_ROWS, Sharing, read, written
from gateway.shared import store
from gateway.shared.store import Shared
from tests.gateway.shared.test_store import served

APP = Caller(kind=CallerKind.TOKEN, name="app", rights=Rights(), number=1)
CALLS = (APP.key, "requests")
RATE = 50
WAIT_S = 60


def test_what_is_told_is_read_again() -> None:
    wants = {CALLS: 0.25, ("user:olga", "bytes"): 1.0}

    assert read(written("gateway-1", wants)) == ("gateway-1", wants)


def test_those_that_want_the_most_are_told() -> None:
    wants = {(f"token:{number}", "bytes"): 0.01 + number / 10_000 for number in range(MAX_ROWS + 5)}

    _, told = read(written("gateway-1", wants))

    assert len(told) == MAX_ROWS
    assert ("token:0", "bytes") not in told


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"worker": 7, "wants": []}',
        b'{"worker": "w", "wants": [7]}',
        b'{"worker": "w", "wants": [["k", "requests", "1"]]}',
        b'{"worker": "w", "wants": [["k", "_rates", 1]]}',
        b'{"worker": "w", "wants": [["k", "requests", NaN]]}',
        b'{"worker": "w", "wants": [["%b", "requests", 1]]}' % (b"k" * 1_000),
        b" " * (MAX_NEWS_BYTES + 1),
        b"[" * 100_000,
    ],
    ids=range(12),
)
def test_what_no_worker_writes_is_passed_over(text: bytes) -> None:
    limits = Limits(Rates(requests=1))
    found = Sharing("gateway-1", limits, Shared("", cluster="c"))

    found._hear(text)  # noqa: SLF001 - what the server calls

    limits.take_request(APP)


def test_parts_are_between_nothing_and_all() -> None:
    rows = [[APP.key, "requests", -5], [APP.key, "bytes", 1e9]]
    _, wants = read(json.dumps({"worker": "w", "wants": rows}).encode())

    assert list(wants.values()) == [0.0, 1.0]


class Hearing(Limits):
    """Counts what it hears."""

    heard = 0

    def hear(self, worker: str, wants: Wants) -> None:
        super().hear(worker, wants)
        self.heard += 1


def granted(limits: Limits) -> int:
    """Ask for more than there is, and return what was granted."""
    for number in range(2 * RATE):
        try:
            limits.take_request(APP)
        except ApiError:
            return number
    raise AssertionError("a bucket holds no more than a second")


@pytest.mark.slow
def test_workers_over_a_server_come_to_one_rate_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "TELL_SECONDS", 0.02)
    monkeypatch.setattr(store, "PAUSE_SECONDS", 0.02)
    now = 0.0

    async def run() -> None:
        nonlocal now
        shared = [Shared(f"unix://{tmp_path / 's'}", cluster="c") for _ in range(3)]
        limits = [Hearing(Rates(requests=RATE), monotonic=lambda: now) for _ in shared]
        found = [Sharing("gateway", each, news) for each, news in zip(limits, shared, strict=True)]
        for each in found:
            each.begin()
        total = 3 * RATE
        async with asyncio.timeout(WAIT_S):
            # Each second of the clock each of them is asked for all that it has.
            while total > 1.2 * RATE:
                now += 1.0
                total = sum(map(granted, limits))
                told = [each.heard + 2 for each in limits]
                while any(each.heard < least for each, least in zip(limits, told, strict=True)):
                    # Nothing is left in this second, and all of them are asked on.
                    total += sum(map(granted, limits))
                    await asyncio.sleep(0)
        for each, news in zip(found, shared, strict=True):
            await each.close()
            await news.close()

    with served(tmp_path):
        asyncio.run(run())
