"""Brokers as members: let in when they have caught up, shut out when they are gone."""

import asyncio
from collections.abc import Callable

import pytest
from django.db import OperationalError

from brokers.cluster.proposals import CreateTopic
from brokers.cluster.store import Registered
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.controlplane.host import (
    SOON_S,
    Host,
    LocalBroker,
    is_serving,
    new_cluster,
    running_host,
    serving_broker,
)
from tests.fakes.clock import ManualClock

from brokers.controlplane.sessions import SESSION_S  # isort: skip

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

JUST_UNDER_MS = int(1000 * SESSION_S) - 1


class Processes:
    """The processes of a machine, as a watch sees them."""

    def __init__(self, *alive: str) -> None:
        self._alive = set(alive)
        self._watchers: dict[str, Callable[[], None]] = {}

    def watch(self, process: str, when_dead: Callable[[], None]) -> Callable[[], None] | None:
        if process not in self._alive:
            return None
        self._watchers[process] = when_dead
        return lambda: None

    def kill(self, process: str) -> None:
        self._alive.discard(process)
        self._watchers.pop(process)()


async def fenced(host: Host, broker_id: int = 1) -> None:
    await host.until(lambda: not is_serving(host, broker_id))


def test_a_broker_that_has_not_applied_its_registration_stays_out(database: str) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host:
            broker = LocalBroker(host)
            registered = await broker.register()

            broker.attachment.applied(registered.version - 1)
            (outcome,) = await broker.propose(CreateTopic(name="early"))

            assert outcome.error is ErrorCode.STALE_BROKER_EPOCH

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_process_that_ends_is_shut_out_at_once(database: str) -> None:
    async def story() -> None:
        processes = Processes("one", "two")
        async with running_host(cluster_id, clock=ManualClock(), watch=processes.watch) as host:
            async with serving_broker(host, process="one"):
                processes.kill("one")
                await fenced(host)

            successor = LocalBroker(host, broker_id=1, process="two")
            assert (await successor.register()).broker_id == 1

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_second_incarnation_is_refused_while_the_first_process_lives(database: str) -> None:
    async def story() -> None:
        processes = Processes("one", "two")
        async with (
            running_host(cluster_id, clock=ManualClock(), watch=processes.watch) as host,
            serving_broker(host, process="one") as first,
        ):
            first.attachment.close()
            with pytest.raises(KafkaError, match="running already") as refusal:
                await LocalBroker(host, broker_id=1, process="two").register()
            assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_link_that_is_made_anew_in_time_costs_nothing(database: str) -> None:
    async def story() -> None:
        clock = ManualClock()
        async with (
            running_host(cluster_id, clock=clock) as host,
            serving_broker(host) as broker,
        ):
            version = host.store.image.version
            broker.attachment.close()
            clock.advance(JUST_UNDER_MS)
            host.membership.end_expired()
            again = await broker.again().register()
            clock.advance(JUST_UNDER_MS)
            host.membership.end_expired()

            assert again == broker.registered
            assert is_serving(host)
            assert host.store.image.version == version

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_silent_broker_is_shut_out_and_comes_back_under_its_epoch(database: str) -> None:
    async def story() -> None:
        clock = ManualClock()
        async with running_host(cluster_id, clock=clock) as host:
            async with serving_broker(host) as broker:
                clock.advance(JUST_UNDER_MS + 1)
                host.membership.end_expired()
                await fenced(host)

            again = broker.again()
            assert await again.register() == broker.registered
            again.attachment.applied(host.store.image.version)
            await host.until(lambda: is_serving(host))

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_broker_that_comes_back_while_the_database_is_away_is_not_shut_out(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    def fail(**_: object) -> bool:
        tried.set()
        raise OperationalError("the database is away")

    async def story() -> None:
        clock = ManualClock()
        async with running_host(cluster_id, clock=clock) as host, serving_broker(host) as broker:
            version = host.store.image.version
            with monkeypatch.context() as patch:
                patch.setattr("brokers.controlplane.services.fence_broker", fail)
                clock.advance(JUST_UNDER_MS + 1)
                host.membership.end_expired()
                await tried.wait()
                assert await broker.again().register() == broker.registered
            await broker.propose(CreateTopic(name="orders"))

            assert is_serving(host)
            assert host.store.image.version == version + 1

    cluster_id = new_cluster()
    asyncio.run(story())


def test_answers_keep_a_session_alive(database: str) -> None:
    async def story() -> None:
        clock = ManualClock()
        async with running_host(cluster_id, clock=clock) as host, serving_broker(host) as broker:
            for _ in range(3):
                clock.advance(JUST_UNDER_MS)
                broker.attachment.answered()
                host.membership.end_expired()

            assert is_serving(host)

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_returning_agent_gives_every_broker_a_full_session(database: str) -> None:
    async def before() -> LocalBroker:
        async with running_host(cluster_id) as host, serving_broker(host, process="one") as broker:
            return broker

    async def after(broker: LocalBroker) -> None:
        clock = ManualClock()
        processes = Processes("one")
        async with running_host(cluster_id, clock=clock, watch=processes.watch) as host:
            clock.advance(JUST_UNDER_MS)
            host.membership.end_expired()
            assert is_serving(host)

            with pytest.raises(KafkaError, match="running already"):
                await LocalBroker(host, broker_id=1, process="two").register()

            clock.advance(1)
            host.membership.end_expired()
            await fenced(host)

    cluster_id = new_cluster()
    asyncio.run(after(asyncio.run(before())))


def test_a_returning_agent_shuts_out_at_once_whose_process_is_gone(database: str) -> None:
    async def before() -> None:
        async with running_host(cluster_id) as host, serving_broker(host, process="one"):
            assert is_serving(host)

    async def after() -> None:
        async with running_host(cluster_id, watch=Processes().watch) as host:
            await fenced(host)

    cluster_id = new_cluster()
    asyncio.run(before())
    asyncio.run(after())


def test_nothing_is_written_at_rest(database: str) -> None:
    async def story() -> None:
        clock = ManualClock()
        async with running_host(cluster_id, clock=clock) as host, serving_broker(host) as broker:
            version = host.store.image.version
            for _ in range(100):
                clock.advance(1000)
                broker.attachment.answered()
                host.membership.end_expired()
            await host.store.ask(lambda: None)

            assert host.store.image.version == version

    cluster_id = new_cluster()
    asyncio.run(story())


def test_an_answer_waits_for_every_broker_of_the_host(database: str) -> None:
    async def story() -> None:
        async with (
            running_host(cluster_id) as host,
            serving_broker(host) as first,
            serving_broker(host) as second,
        ):
            (outcome,) = await first.propose(CreateTopic(name="orders"))

            for broker in (first, second):
                assert broker.image is not None
                assert broker.image.version >= outcome.version

    cluster_id = new_cluster()
    asyncio.run(story())


def test_an_answer_does_not_wait_for_a_broker_that_hangs(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.membership.APPLIED_WITHIN_S", 0.01)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as first:
            hanging = LocalBroker(host)
            registered = await hanging.register()
            hanging.attachment.applied(registered.version)
            await host.until(lambda: is_serving(host, registered.broker_id))

            (outcome,) = await first.propose(CreateTopic(name="orders"))

            assert not outcome.error

    cluster_id = new_cluster()
    asyncio.run(story())


def test_an_answer_waits_for_no_broker_that_has_not_answered_pings_lately(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.membership.APPLIED_WITHIN_S", 10 * SOON_S)
    clock = ManualClock()

    async def story() -> None:
        async with (
            asyncio.timeout(SOON_S),
            running_host(cluster_id, clock=clock) as host,
            serving_broker(host) as first,
        ):
            hanging = LocalBroker(host)
            registered = await hanging.register()
            hanging.attachment.applied(registered.version)
            await host.until(lambda: is_serving(host, registered.broker_id))
            clock.advance(2_000)
            first.attachment.answered()

            (outcome,) = await first.propose(CreateTopic(name="orders"))

            assert not outcome.error

    cluster_id = new_cluster()
    asyncio.run(story())


def test_of_two_that_register_under_one_id_at_once_one_serves(database: str) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host:
            twins = [LocalBroker(host, broker_id=1) for _ in range(2)]
            first, second = await asyncio.gather(
                *[twin.register() for twin in twins], return_exceptions=True
            )

            assert isinstance(first, Registered)
            assert isinstance(second, KafkaError)
            assert second.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            twins[0].attachment.applied(first.version)
            await host.until(lambda: is_serving(host))

    cluster_id = new_cluster()
    asyncio.run(story())


def test_fences_are_written_before_brokers_are_let_in_and_wait_for_no_locked_row(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.membership.FIRST_PAUSE_S", 0.01)
    written: list[tuple[str, int]] = []
    locked = {2}

    def service(name: str) -> Callable[..., bool]:
        def write(*, broker_id: int, **_: object) -> bool:
            written.append((name, broker_id))
            if broker_id in locked:
                locked.clear()
                raise OperationalError("database is locked: waited 1 s")
            return True

        return write

    async def story() -> None:
        async with running_host(cluster_id) as host:
            brokers = [LocalBroker(host) for _ in range(3)]
            for broker in brokers:
                await broker.register()
            monkeypatch.setattr("brokers.controlplane.services.fence_broker", service("fence"))
            monkeypatch.setattr("brokers.controlplane.services.unfence_broker", service("let in"))
            first, second, third = (broker.attachment for broker in brokers)
            first.applied(host.store.image.version + 9)
            second.close(is_dead=True)
            third.close(is_dead=True)
            async with asyncio.timeout(SOON_S):
                while len(written) < 4:
                    await asyncio.wait([host.following], timeout=0.01)

    cluster_id = new_cluster()
    asyncio.run(story())

    assert written == [("fence", 2), ("fence", 3), ("let in", 1), ("fence", 2)]
