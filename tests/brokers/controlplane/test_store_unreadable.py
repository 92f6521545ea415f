"""Changes that this code cannot read, as a newer host would write them: no loop, nobody dies."""

import asyncio
import secrets

import msgspec
import pytest
from django.db.models import F

from brokers.cluster import link
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.proposals import CreateTopic
from tests.brokers.controlplane.host import (
    NOW_MS,
    new_cluster,
    running_host,
    serving_broker,
)

from brokers.controlplane import models  # isort: skip
from brokers.controlplane.database import transactional  # isort: skip

UNKNOWN_TAG = 31


def unknown_change(position: Position) -> bytes:
    """Return the frames of a change with a record of a kind that no release has."""
    place = [position.version, position.id]
    message = [link.TAGS[link.ChangeFrame], place, [[UNKNOWN_TAG, "?"]], True]
    body = msgspec.msgpack.encode(message)
    return link.LENGTH.pack(len(body)) + body


@transactional
def write_unknown_change() -> None:
    cluster = models.Cluster.objects.get()
    change_id = secrets.token_bytes(16)
    models.Cluster.objects.update(version=F("version") + 1, change_id=change_id)
    cluster.refresh_from_db()
    models.Change.objects.create(
        cluster=cluster,
        version=cluster.version,
        change_id=change_id,
        encoded=unknown_change(Position(version=cluster.version, id=change_id)),
        summary="something new",
        actor="a newer host",
        made_at_ms=NOW_MS,
    )


def test_a_change_of_an_unknown_kind_is_passed_over_with_a_whole_image(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.READ_AGAIN_S", 0.01)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            before = host.store.image.version
            await host.run_elsewhere(write_unknown_change)
            await host.until(lambda: host.store.image.version == before + 1)
            (outcome,) = await broker.propose(CreateTopic(name="after", partitions=1))

            assert not outcome.error
            # A change is answered once it is committed, and an image follows a moment later.
            await host.until(lambda: broker.image is not None and "after" in broker.image.topics)
            assert not host.following.done()

    cluster_id = new_cluster()
    asyncio.run(story())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_reader_is_never_handed_what_its_agent_could_not_read(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.READ_AGAIN_S", 0.01)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            seen = host.store.image.position
            await host.run_elsewhere(write_unknown_change)
            await host.until(lambda: host.store.image.version == seen.version + 1)

            update = await anext(host.store.updates(seen))

            assert isinstance(update, ClusterImage)
            assert broker.registered is not None

    cluster_id = new_cluster()
    asyncio.run(story())
