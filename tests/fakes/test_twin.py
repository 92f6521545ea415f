"""The twin keeps the contract of every store, and does what tests ask of it beside."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from brokers.cluster.image import Position
from brokers.cluster.plans import Plan
from brokers.cluster.proposals import Action, CreateTopic
from brokers.cluster.store import MetadataRegressed, MetadataStore
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.contracts.keeper import Keeper, proposal, registration
from tests.contracts.metadata_store import CASES, Case, case_name, check
from tests.fakes.twin import Door, Twin


class TwinKeeper:
    """A twin as the contract's cases ask for it."""

    def __init__(self) -> None:
        self.twin = Twin()
        self.cluster_id = self.twin.cluster_id

    def attach(self) -> MetadataStore:
        return self.twin.attach()

    async def end(self, store: MetadataStore) -> None:
        assert isinstance(store, Door)
        store.kill()

    async def forget(self) -> None:
        self.twin.forget_changes()

    async def preview(self, actions: Sequence[Action]) -> Plan:
        return self.twin.preview(actions)


@asynccontextmanager
async def opened_twin() -> AsyncIterator[Keeper]:
    yield TwinKeeper()


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_twin_keeps_the_contract(case: Case) -> None:
    check(case, opened_twin)


def test_every_broker_has_a_door_of_its_own() -> None:
    async def story() -> None:
        twin = Twin()
        doors = [twin.attach(), twin.attach()]
        registered = [await door.register(registration()) for door in doors]

        doors[1].applied(registered[1].version)

        fenced = {broker.id: broker.is_fenced for broker in twin.image.brokers.values()}
        assert fenced == {1: True, 2: False}

    asyncio.run(story())


def test_cut_link_ends_its_waits_and_can_be_restored() -> None:
    async def story() -> None:
        twin = Twin()
        door = twin.attach()
        asked = registration()
        first = await door.register(asked)
        updates = door.follow(Position())
        await anext(updates)
        waiting = asyncio.ensure_future(anext(updates))
        await asyncio.sleep(0)

        door.cut()

        with pytest.raises(ConnectionError):
            await waiting
        with pytest.raises(ConnectionError):
            await door.propose([proposal(CreateTopic(name="orders"))])
        assert await door.register(asked) == first

    asyncio.run(story())


def test_unavailable_twin_refuses_calls_and_reports_nothing() -> None:
    async def story() -> None:
        twin = Twin()
        twin.is_away = True

        with pytest.raises(ConnectionError):
            await twin.register(registration())
        twin.is_away = False
        await twin.register(registration())
        twin.is_away = True
        with pytest.raises(ConnectionError):
            await twin.propose([proposal(CreateTopic(name="orders"))])

    asyncio.run(story())


def test_a_twin_that_was_set_back_knows_later_positions_no_more() -> None:
    async def story() -> None:
        twin = Twin()
        twin.register_now()
        old = twin.image
        twin.create_topic("lost.topic")
        newest = twin.image.position
        updates = twin.follow(newest)

        twin.set_back(old)

        with pytest.raises(MetadataRegressed):
            await anext(updates)
        # Nor where other changes have taken their numbers since.
        twin.create_topic("lost_topic")
        assert twin.image.version == newest.version
        with pytest.raises(MetadataRegressed):
            await anext(twin.follow(newest))

    asyncio.run(story())


def test_twin_keeps_the_configured_number_of_changes() -> None:
    async def story() -> None:
        twin = Twin(changes_kept=2)
        twin.register_now()
        after = twin.image.position
        for number in range(3):
            twin.create_topic(f"topic-{number}")

        update = await anext(twin.follow(after))

        assert update == twin.image

    asyncio.run(story())


def test_a_topic_that_cannot_be_created_is_an_error() -> None:
    with pytest.raises(KafkaError) as refusal:
        Twin().create_topic("orders")

    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
