"""Seats of callers: each worker counts its own, and all of a home count them together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest import seats
from gateway.rest.codes import ApiError
from gateway.rest.seats import Ledger, Seats
from gateway.shared.store import Seated, Shared
from tests.gateway.shared.test_store import connected, served

APP = Caller(kind=CallerKind.TOKEN, name="app", rights=Rights(), number=1)
OTHER = Caller(kind=CallerKind.TOKEN, name="other", rights=Rights(), number=2)
WAIT_S = 60


class Counted:
    """What workers share, in one process; `is_lost` is a server that does not answer."""

    def __init__(self) -> None:
        self.by_worker: dict[tuple[str, str, str], int] = {}
        self.is_lost = False
        self.asked = 0

    async def seat(
        self, rows: Sequence[Seated], *, worker: str, ttl_s: float
    ) -> Sequence[int] | None:
        assert ttl_s > 0
        self.asked += 1
        if self.is_lost:
            return None
        found = []
        for row in rows:
            others = sum(
                count
                for (what, name, other), count in self.by_worker.items()
                if (what, name) == (row.what, row.name) and other != worker
            )
            if others + row.seats <= row.most:
                self.by_worker[row.what, row.name, worker] = row.seats
            found.append(others)
        return found


class Stage:
    """Three workers, each with at most five seats, and three of one caller."""

    def __init__(self, shared: Callable[[], seats.Shared]) -> None:
        self.ledgers = [Ledger(f"gateway-{number}", shared) for number in range(3)]
        self.workers = [
            Seats("consumers", most=5, each=3, ledger=ledger) for ledger in self.ledgers
        ]


def on_stage(
    scenario: Callable[[Stage], Awaitable[None]], shared: Callable[[], seats.Shared]
) -> None:
    async def run() -> None:
        stage = Stage(shared)
        try:
            async with asyncio.timeout(WAIT_S):
                await scenario(stage)
        finally:
            for ledger in stage.ledgers:
                await ledger.close()

    asyncio.run(run())


async def tried(worker: Seats, caller: Caller = APP) -> ApiError | None:
    try:
        await worker.reserve(caller)
    except ApiError as error:
        return error
    return None


def is_let_in(worker: Seats) -> bool:
    try:
        with worker.taken(APP):
            return True
    except ApiError:
        return False


@pytest.mark.slow
def test_reserved_seats_are_counted_over_all_workers_at_once(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        await connected(shared[0])

        found = await asyncio.gather(*(tried(worker) for worker in stage.workers * 4))
        refused = [error for error in found if error is not None]

        # A seat that is asked for counts for the other workers until it is refused.
        taken = len(found) - len(refused)
        while taken < 3:
            taken += await tried(stage.workers[0]) is None

        assert taken == 3
        assert {error.retry_after_s for error in refused} == {seats.COMES_BACK_S}
        assert "token:app has" in refused[0].message
        assert await tried(stage.workers[0], OTHER) is None
        owner = next(
            worker for worker, error in zip(stage.workers, found, strict=False) if not error
        )
        owner.release(APP.key)
        while await tried(stage.workers[2]) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await tried(stage.workers[1]) is not None

    shared: list[Shared] = []

    def connect() -> Shared:
        # Belongs to the loop.
        if not shared:
            shared.append(Shared(f"unix://{tmp_path / 's'}", cluster="c"))
        return shared[0]

    async def prepared(stage: Stage) -> None:
        connect()
        try:
            await scenario(stage)
        finally:
            await shared[0].close()

    with served(tmp_path):
        on_stage(prepared, connect)


def test_taken_seats_are_compared_with_the_last_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "REPORT_SECONDS", 0.01)
    counted = Counted()

    async def scenario(stage: Stage) -> None:
        one, other, _ = stage.workers
        with one.taken(APP), one.taken(APP), other.taken(APP):
            while is_let_in(other):  # noqa: ASYNC110
                await asyncio.sleep(0)
            with pytest.raises(ApiError, match="token:app has 3 consumers open") as refused:
                other.taken(APP).__enter__()
            assert refused.value.retry_after_s == seats.COMES_BACK_S
        # Seats that were given back are reported too, and then nothing is.
        while any(counted.by_worker.values()):  # noqa: ASYNC110
            await asyncio.sleep(0)
        with one.taken(APP), one.taken(APP), one.taken(APP):
            pass

    on_stage(scenario, lambda: counted)


def test_each_worker_counts_alone_while_the_server_is_away() -> None:
    counted = Counted()
    counted.is_lost = True

    async def scenario(stage: Stage) -> None:
        for worker in stage.workers:
            assert [await tried(worker) is None for _ in range(4)] == [True, True, True, False]

    on_stage(scenario, lambda: counted)


def test_seats_that_were_refused_are_free_again() -> None:
    counted = Counted()

    async def scenario(stage: Stage) -> None:
        one, other, third = stage.workers
        for _ in range(3):
            assert await tried(one) is None
        for worker in (other, third, one) * 4:
            assert await tried(worker) is not None
        # The seats of the worker itself are all free.
        for number in range(5):
            named = Caller(kind=CallerKind.TOKEN, name=f"t{number}", rights=Rights())
            assert await tried(other, named) is None
        full = await tried(other, OTHER)

        assert full is not None
        assert "this worker has 5 consumers open" in full.message

    on_stage(scenario, lambda: counted)
