"""One thread polls for all tabs: changes, and ended sessions."""

import asyncio
import json
from collections.abc import Callable
from typing import NoReturn

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import timezone

from console.events.hub import Hub, Owner, Stream
from console.events.watch import AWAY, SESSIONS_SECONDS, Watch
from gateway.access.grants import Rights
from gateway.access.models import Session
from gateway.shared import hints
from gateway.shared.store import Shared
from tests.builders.live import CLUSTER_ID, Told
from tests.console import cluster_rows
from tests.console.pages.test_overview import lose_the_control_plane

TOPIC = f"cluster:{cluster_rows.CLUSTER_ID}"
ALICE = Owner(user_id=1, session_key="a" * 32, rights=Rights())


async def elsewhere(action: Callable[[], object]) -> None:
    """Do something to a database in another thread, which leaves no connection behind."""

    def act() -> None:
        try:
            action()
        finally:
            connections.close_all()

    await asyncio.to_thread(act)


async def seen(watch: Watch, stream: Stream) -> dict[str, object]:
    """Look once, and return what the stream is told."""
    await watch.look_at_versions()
    values = await stream.take(patience_s=0)
    told: dict[str, object] = json.loads(values.get(TOPIC, "{}"))
    return told


def test_a_new_version_of_the_cluster_is_published_once() -> None:
    row = cluster_rows.cluster(version=7)

    async def told() -> None:
        hub = Hub()
        watch, stream = Watch(hub), hub.open(ALICE, [TOPIC, "cluster:unknown"])

        assert await seen(watch, stream) == {
            "version": 7,
            "is_agent_gone": False,
            "is_regressed": False,
            "can_change": True,
        }
        assert await seen(watch, stream) == {}
        row.version = 8
        await elsewhere(row.save)
        assert (await seen(watch, stream))["version"] == 8

    asyncio.run(told())


def test_a_database_that_is_away_is_published_and_its_return_too() -> None:
    cluster_rows.cluster(version=7)

    async def told() -> None:
        hub = Hub()
        watch, stream = Watch(hub), hub.open(ALICE, [TOPIC])
        await seen(watch, stream)

        await elsewhere(lose_the_control_plane)
        assert await seen(watch, stream) == json.loads(AWAY)
        await elsewhere(regain_the_control_plane)
        assert (await seen(watch, stream))["version"] == 7

    asyncio.run(told())


def regain_the_control_plane() -> None:
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE elsewhere RENAME TO controlplane_cluster")


def test_nothing_is_asked_of_the_control_plane_for_a_stream_without_a_cluster() -> None:
    async def quiet() -> None:
        hub = Hub()
        watch, stream = Watch(hub), hub.open(ALICE, ["other:orders"])
        await elsewhere(lose_the_control_plane)

        assert await seen(watch, stream) == {}

    asyncio.run(quiet())


def test_tables_that_moved_are_published_once() -> None:
    live, health = f"live:{CLUSTER_ID}", f"health:{CLUSTER_ID}"

    async def told() -> None:
        hub, collector = Hub(), Told()
        watch, stream = Watch(hub), hub.open(ALICE, [live, health])
        watch.snapshots = collector.snapshot

        await watch.look_at_tables()
        first = await stream.take(patience_s=0)
        await watch.look_at_tables()
        second = await stream.take(patience_s=0)
        collector.go_silent()
        await watch.look_at_tables()
        third = await stream.take(patience_s=0)

        assert first.keys() == {live, health}
        assert second == {}
        assert json.loads(third[live])["state"] == "stale"

    asyncio.run(told())


def test_the_mirror_is_not_asked_where_nobody_listens_to_it() -> None:
    def snapshot() -> NoReturn:
        raise AssertionError("nobody listens")

    async def quiet() -> None:
        hub = Hub()
        watch = Watch(hub)
        hub.open(ALICE, [TOPIC])
        watch.snapshots = snapshot
        await watch.look_at_tables()

    asyncio.run(quiet())


async def watched(client: Client, *, sessions_s: float = SESSIONS_SECONDS) -> tuple[Watch, Stream]:
    """Open a stream of the user who is signed in."""
    hub = Hub()
    watch = Watch(hub, sessions_s=sessions_s)
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    owner = await watch.owner_of({settings.SESSION_COOKIE_NAME: key})
    assert owner is not None
    return watch, hub.open(owner, [TOPIC])


def test_a_session_that_has_ended_elsewhere_ends_its_streams(alice: Client) -> None:
    async def ended() -> None:
        watch, stream = await watched(alice)

        await watch.look_at_sessions()
        assert stream.ended == ""
        await elsewhere(Session.objects.all().delete)
        await watch.look_at_sessions()
        assert stream.ended == "signed out"

    asyncio.run(ended())


@pytest.mark.parametrize(
    "ending",
    [
        lambda: Session.objects.all().delete(),
        lambda: Session.objects.update(expire_date=timezone.now()),
        lambda: User.objects.update(is_active=False),
    ],
    ids=["deleted", "expired", "disabled"],
)
def test_a_stream_ends_within_a_second_of_its_session(
    alice: Client, ending: Callable[[], object]
) -> None:
    async def ended() -> None:
        watch, stream = await watched(alice)

        await watch.look_for_ended_sessions()
        assert stream.ended == ""
        await elsewhere(ending)
        await watch.look_for_ended_sessions()
        assert stream.ended == "signed out"

    asyncio.run(ended())
    assert SESSIONS_SECONDS < 1


def test_hint_ends_the_streams_of_an_ended_session_before_the_next_poll(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ended() -> None:
        layer = hints.layer_of(Shared("", cluster="c"))
        monkeypatch.setattr("console.events.watch.get_channel_layer", lambda: layer)
        watch, stream = await watched(alice, sessions_s=3_600.0)
        watch.begin()
        await elsewhere(Session.objects.all().delete)

        async with asyncio.timeout(30):
            while not stream.ended:
                await layer.group_send(hints.ACCESS, {"type": "access.changed"})
                await stream.take(patience_s=0.01)
        watch.end()

    asyncio.run(ended())


def test_nothing_is_asked_once_the_last_tab_is_closed() -> None:
    async def rested() -> None:
        hub = Hub()
        watch = Watch(hub)
        stream = hub.open(ALICE, [TOPIC])
        before = asyncio.all_tasks()
        watch.begin()
        watch.begin()
        assert len(asyncio.all_tasks() - before) == 4

        hub.close(stream)
        watch.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert asyncio.all_tasks() == before

    asyncio.run(rested())
