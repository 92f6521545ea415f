"""The consumers of one worker: how many there may be, how long, and whose names they have."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.kafka.connection import Connection
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import instances
from gateway.rest.consume.bodies import Draft
from gateway.rest.consume.instances import MAX_WAITING, Instance, Instances

WAIT_S = 30


class Claimed:
    """What workers share, in one process; `is_lost` is a server that does not answer."""

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}
        self.is_lost = False

    async def claim(self, kind: str, name: str, *, owner: str, ttl_s: float) -> bool | None:
        return None if self.is_lost else self.owners.setdefault(name, owner) == owner

    async def renew(
        self, kind: str, names: Sequence[str], *, owner: str, ttl_s: float
    ) -> Sequence[str] | None:
        if self.is_lost:
            return None
        return [
            name for name in names if not await self.claim(kind, name, owner=owner, ttl_s=ttl_s)
        ]

    async def owner_of(self, kind: str, name: str) -> str | None:
        return None if self.is_lost else self.owners.get(name)

    async def release(self, kind: str, name: str, *, owner: str) -> None:
        if self.owners.get(name) == owner:
            del self.owners[name]


class Stage:
    """Two workers, of which the first can be asked by the second."""

    def __init__(self) -> None:
        self.claims = Claimed()
        self.workers = [self._worker(name) for name in ("gateway-1", "gateway-2")]

    def _worker(self, name: str) -> Instances:
        return Instances(
            name,
            connection=lambda: Connection(bootstrap="127.0.0.1:1"),
            names_of=no_topics,
            create_topics=create_none,
            claims=lambda: self.claims,
            has_elsewhere=self._has_first if name != "gateway-1" else nobody_has,
            seats=instances.seats_with(None, most=3, each=2),
        )

    async def _has_first(self, caller: Caller, group: str, name: str, worker: str | None) -> bool:
        return worker in {None, "gateway-1"} and self.workers[0].find(group, name) is not None


async def create_none(*_question: object) -> None:
    """Every topic is there."""


async def no_topics(*_question: object) -> Sequence[str]:
    return ()


async def nobody_has(*_question: object) -> bool:
    return False


def caller(name: str) -> Caller:
    return Caller(kind=CallerKind.TOKEN, name=name, rights=Rights())


def on_stage(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        stage = Stage()
        try:
            await scenario(stage)
        finally:
            for worker in stage.workers:
                await worker.close()

    asyncio.run(run())


async def made(worker: Instances, by: str = "one", *, name: str = "") -> Instance:
    return await worker.create("g", Draft(name=name), caller(by))


def test_one_caller_leaves_room_for_others_and_all_have_a_limit() -> None:
    async def scenario(stage: Stage) -> None:
        worker = stage.workers[0]
        first = await made(worker)
        await made(worker)
        with pytest.raises(ApiError, match="one has 2 consumers") as of_caller:
            await made(worker)
        await made(worker, "other")
        with pytest.raises(ApiError, match="worker has 3 consumers") as of_worker:
            await made(worker, "other")
        await worker.close_one(first)

        assert await made(worker)
        assert {of_caller.value.code, of_worker.value.code} == {Code.TOO_MANY_CONSUMERS}

    on_stage(scenario)


def test_one_that_nobody_uses_is_closed_and_its_name_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instances, "LOOK_S", 0.01)
    monkeypatch.setattr(instances, "IDLE_S", 0.05)

    async def scenario(stage: Stage) -> None:
        instance = await made(stage.workers[0], name="mine")
        async with asyncio.timeout(WAIT_S):
            while stage.claims.owners:  # noqa: ASYNC110
                await asyncio.sleep(0)

        assert instance.is_closed
        assert stage.workers[0].find("g", "mine") is None

    on_stage(scenario)


def test_a_name_is_of_one_worker_also_where_nothing_is_shared() -> None:
    async def scenario(stage: Stage) -> None:
        first, second = stage.workers
        for stage.claims.is_lost in (False, True):
            instance = await made(first, name="mine")
            for worker in (first, second):
                with pytest.raises(ApiError) as refused:
                    await made(worker, name="mine")
                assert refused.value.code is Code.CONSUMER_EXISTS
            await first.close_one(instance)

    on_stage(scenario)


def test_one_that_is_deleted_while_it_claims_its_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(stage: Stage) -> None:
        worker = stage.workers[0]

        async def delete(_instance: Instance, _caller: Caller) -> bool:
            found = worker.find("g", "mine")
            assert found is not None
            await worker.close_one(found)
            return False

        monkeypatch.setattr(worker, "_claim", delete)
        with pytest.raises(ApiError) as refused:
            await made(worker, name="mine")

        assert refused.value.code is Code.CONSUMER_EXISTS
        assert worker.find("g", "mine") is None

    on_stage(scenario)


def test_a_claim_whose_worker_has_ended_goes_to_who_asks() -> None:
    async def scenario(stage: Stage) -> None:
        stage.claims.owners[instances.claim_of("g", "mine")] = "gateway-9"

        assert await made(stage.workers[1], name="mine")
        assert list(stage.claims.owners.values()) == ["gateway-2"]

    on_stage(scenario)


def test_claims_that_were_lost_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "LOOK_S", 0.01)

    async def scenario(stage: Stage) -> None:
        await made(stage.workers[0], name="mine")
        stage.claims.owners.clear()
        async with asyncio.timeout(WAIT_S):
            while not stage.claims.owners:  # noqa: ASYNC110
                await asyncio.sleep(0)

    on_stage(scenario)


def test_one_that_is_slow_to_leave_keeps_no_other_claim_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instances, "LOOK_S", 0.01)

    async def scenario(stage: Stage) -> None:
        worker = stage.workers[0]
        slow = await made(worker, name="slow")
        kept = await made(worker, name="kept")
        goes_on = threading.Event()
        monkeypatch.setattr(slow.member, "close", goes_on.wait)
        slow.used_at -= instances.IDLE_S
        async with asyncio.timeout(WAIT_S):
            while not slow.is_closed:  # noqa: ASYNC110
                await asyncio.sleep(0)
            stage.claims.owners.clear()
            while kept.claim not in stage.claims.owners:  # noqa: ASYNC110
                await asyncio.sleep(0)
        goes_on.set()

        assert worker.find("g", "slow") is None
        assert slow.claim not in stage.claims.owners

    on_stage(scenario)


def test_few_calls_wait_for_one_consumer() -> None:
    async def scenario(stage: Stage) -> None:
        instance = await made(stage.workers[0])
        goes_on = asyncio.Event()

        async def call() -> None:
            async with instance.turn():
                await goes_on.wait()

        calls = [asyncio.create_task(call()) for _ in range(MAX_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as refused:
            await call()
        goes_on.set()
        await asyncio.gather(*calls)

        assert refused.value.code is Code.TOO_MANY

    on_stage(scenario)


def test_a_worker_that_stops_makes_none() -> None:
    async def scenario(stage: Stage) -> None:
        stage.workers[0].drain()
        with pytest.raises(ApiError) as refused:
            await made(stage.workers[0])

        assert refused.value.code is Code.UNAVAILABLE

    on_stage(scenario)
