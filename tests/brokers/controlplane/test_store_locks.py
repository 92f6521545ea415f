"""Rows that another session holds: what waits for them, and what must not."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from django.db import connections, transaction

from brokers.cluster.proposals import CreateTopic, DeleteTopic
from brokers.protocol.errors import ErrorCode
from tests.brokers.controlplane.host import (
    SOON_S,
    Host,
    LocalBroker,
    is_serving,
    new_cluster,
    running_host,
    serving_broker,
)
from tests.brokers.controlplane.test_services import asking
from tests.extras import requires

from brokers.controlplane import models  # isort: skip
from brokers.controlplane.database import alias  # isort: skip

pytestmark = [
    pytest.mark.slow,
    requires("postgresql"),
    pytest.mark.parametrize("database", ["postgres"], indirect=True),
]


@contextmanager
def row_held(model: type[models.Topic | models.Broker], **which: object) -> Iterator[None]:
    """Hold a row's lock in another session for as long as the block lasts."""
    held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic(using=alias()):
                assert model.objects.select_for_update().filter(**which).count() == 1
                list(model.objects.select_for_update().filter(**which))
                held.set()
                may_go.wait(SOON_S)
        finally:
            connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(SOON_S)
    try:
        yield
    finally:
        may_go.set()
        holder.join()


async def until_waited_for() -> None:
    """Return when a statement waits for a row's lock, as the server tells it."""

    def count() -> int:
        try:
            with connections[alias()].cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                return int(cursor.fetchone()[0])
        finally:
            connections.close_all()

    # Each turn of this asks the server, which has no event for it.
    while not await asyncio.to_thread(count):
        continue


def test_a_dead_broker_is_fenced_while_its_own_proposal_waits_for_a_topics_row(
    database: str,
) -> None:
    async def story() -> None:
        async with (
            asyncio.timeout(2 * SOON_S),
            running_host(cluster_id) as host,
            serving_broker(host) as first,
            serving_broker(host) as second,
        ):
            await first.propose(CreateTopic(name="held", partitions=1, replication_factor=1))
            with row_held(models.Topic, name="held"):
                deleting = asyncio.create_task(second.propose(DeleteTopic(name="held")))
                await until_waited_for()

                assert second.registered is not None
                second.attachment.close(is_dead=True)
                await host.until(partial(is_fenced, host, second))
                (other,) = await first.propose(CreateTopic(name="other", partitions=1))

                assert not other.error
                assert not deleting.done()
            (late,) = await deleting
            assert late.error is ErrorCode.STALE_BROKER_EPOCH

    cluster_id = new_cluster()
    asyncio.run(story())


def is_fenced(host: Host, broker: LocalBroker) -> bool:
    assert broker.registered is not None
    return not is_serving(host, broker.registered.broker_id)


def test_a_proposal_that_waits_for_too_long_is_told_to_come_later_and_then_done(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await broker.propose(CreateTopic(name="held", partitions=1, replication_factor=1))
            assert broker.registered is not None
            monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", 0.3)
            asked = asking(DeleteTopic(name="held"), broker.registered)
            with (
                row_held(models.Topic, name="held"),
                pytest.raises(ConnectionError, match="has not answered"),
            ):
                await broker.attachment.propose([asked])

            monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", SOON_S)
            (outcome,) = await broker.attachment.propose([asked])

            assert not outcome.error
            await host.until(lambda: "held" not in host.store.image.topics)

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_broker_whose_row_is_held_keeps_no_other_one_in(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.lanes.LIVENESS_LOCK_S", 0.1)

    async def story() -> None:
        async with (
            asyncio.timeout(2 * SOON_S),
            running_host(cluster_id) as host,
            serving_broker(host) as first,
            serving_broker(host) as second,
        ):
            assert first.registered is not None
            with row_held(models.Broker, broker_id=first.registered.broker_id):
                first.attachment.close(is_dead=True)
                second.attachment.close(is_dead=True)
                await host.until(partial(is_fenced, host, second))
                assert not is_fenced(host, first)
            await host.until(partial(is_fenced, host, first))
            assert not host.following.done()

    cluster_id = new_cluster()
    asyncio.run(story())
