"""The ORM store: what it yields, from where, and what it does without its database."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from brokers.cluster.changes import Change
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.proposals import (
    AllocateProducerIds,
    CreateTopic,
    ProducerIdsResult,
    Proposal,
)
from brokers.cluster.store import MetadataRegressed
from brokers.protocol.errors import ErrorCode
from gateway.sqlite.turns import Turn
from tests.brokers.controlplane.host import (
    NOW_MS,
    SOON_S,
    Host,
    LocalBroker,
    is_serving,
    new_cluster,
    running_host,
    serving_broker,
)
from tests.database import postgres_database
from tests.extras import requires
from tests.postgres import PostgresServer

from brokers.controlplane import models, services  # isort: skip
from brokers.controlplane.database import connection as database_connection  # isort: skip
from brokers.controlplane.feed import Feed, make_feed  # isort: skip
from brokers.controlplane.history import Entry  # isort: skip
from brokers.controlplane.reading import read_all  # isort: skip


def topic(name: str) -> CreateTopic:
    return CreateTopic(name=name, partitions=1, replication_factor=1)


async def take(
    updates: AsyncIterator[ClusterImage | Change], count: int
) -> list[ClusterImage | Change]:
    async with asyncio.timeout(SOON_S):
        return [await anext(updates) for _ in range(count)]


def positions(updates: Sequence[ClusterImage | Change]) -> list[int]:
    return [update.position.version for update in updates]


def test_a_reader_that_has_seen_nothing_gets_the_image_and_then_changes(database: str) -> None:
    async def story() -> None:
        async with (
            running_host(cluster_id) as host,
            serving_broker(host) as broker,
            aclosing(broker.attachment.follow(Position())) as updates,
        ):
            begun = await take(updates, 1)
            await broker.propose(topic("one"))
            await broker.propose(topic("two"))
            changed = await take(updates, 2)

        assert isinstance(begun[0], ClusterImage)
        assert positions(changed) == [begun[0].version + 1, begun[0].version + 2]

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_reader_that_returns_gets_what_it_missed(database: str) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            seen = host.store.image.position
            await broker.propose(topic("one"))
            await broker.propose(topic("two"))
            async with aclosing(broker.attachment.follow(seen)) as updates:
                missed = await take(updates, 2)

        assert positions(missed) == [seen.version + 1, seen.version + 2]
        assert all(isinstance(update, Change) for update in missed)

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_new_agent_still_knows_the_changes_before_it(database: str) -> None:
    async def before() -> Position:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            seen = host.store.image.position
            await broker.propose(topic("one"))
            return seen

    async def after(seen: Position) -> None:
        async with running_host(cluster_id) as host:
            broker = LocalBroker(host)
            async with aclosing(broker.attachment.follow(seen)) as updates:
                (missed,) = await take(updates, 1)
        assert isinstance(missed, Change)

    cluster_id = new_cluster()
    asyncio.run(after(asyncio.run(before())))


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_position_that_the_store_never_had_is_refused(database: str, ahead: int) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            unknown = Position(version=host.store.image.version + ahead, id=secrets.token_bytes(16))
            with pytest.raises(MetadataRegressed, match="METADATA_REGRESSED"):
                await anext(aiter(broker.attachment.follow(unknown)))

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_position_older_than_what_is_kept_gets_the_image(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.reading.KEPT_CHANGES", 2)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            seen = host.store.image.position
            for number in range(4):
                await broker.propose(topic(f"t{number}"))
            async with aclosing(broker.attachment.follow(seen)) as updates:
                (update,) = await take(updates, 1)
        assert isinstance(update, ClusterImage)

    cluster_id = new_cluster()
    asyncio.run(story())


def test_what_another_process_writes_arrives(database: str) -> None:
    """The console's commits come over another connection, without a word to the agent."""

    def write_elsewhere() -> None:
        services.propose(
            cluster_id=cluster_id,
            proposals=[Proposal(id=bytes(16), action=topic("from-elsewhere"), actor="User:bob")],
            now_ms=NOW_MS,
        )

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host):
            await host.run_elsewhere(write_elsewhere)
            await host.until(lambda: "from-elsewhere" in host.store.image.topics)

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_change_is_encoded_once_for_all_who_follow(database: str) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            seen = host.store.image.position
            await broker.propose(topic("one"))
            entries = []
            for _ in range(2):
                async with aclosing(host.store.updates(seen)) as updates:
                    entries.append(await anext(updates))

        first, second = entries
        assert isinstance(first, Entry)
        assert isinstance(second, Entry)
        assert first.encoded is second.encoded

    cluster_id = new_cluster()
    asyncio.run(story())


def set_back(version: int) -> None:
    """Let the database look as a restored backup does to a reader: rows of the past."""
    models.Change.objects.filter(version__gt=version).delete()
    models.Cluster.objects.update(version=version)


async def regressed(host: Host) -> None:
    await host.until(lambda: host.store.regressed is not None)


def test_a_database_that_was_set_back_is_not_believed(database: str) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await broker.propose(topic("kept"))
            await broker.propose(topic("also-kept"))
            await host.run_elsewhere(lambda: set_back(2))
            await regressed(host)

            (refused,) = await broker.propose(topic("refused"))

            assert refused.error is ErrorCode.POSITION_OUT_OF_RANGE
            assert "METADATA_REGRESSED" in refused.message
            with pytest.raises(MetadataRegressed, match="METADATA_REGRESSED"):
                await LocalBroker(host).register()
            assert set(host.store.image.topics) == {"kept", "also-kept"}

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_database_that_knows_its_position_again_is_followed_again(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.READ_AGAIN_S", 0.01)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await broker.propose(topic("kept"))
            newest, before = await asyncio.to_thread(newest_rows)
            await host.run_elsewhere(lambda: set_back(before))
            await regressed(host)

            await host.run_elsewhere(lambda: put_back(newest))
            await host.until(lambda: host.store.regressed is None)
            (accepted,) = await broker.propose(topic("after"))

            assert not accepted.error
            assert not host.following.done()

    def newest_rows() -> tuple[list[models.Change], int]:
        try:
            rows = list(models.Change.objects.order_by("-version")[:1])
        finally:
            connections.close_all()
        return rows, rows[0].version - 1

    def put_back(rows: list[models.Change]) -> None:
        models.Change.objects.bulk_create(rows)
        models.Cluster.objects.update(version=rows[0].version)

    cluster_id = new_cluster()
    asyncio.run(story())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_old_file_in_the_place_of_a_running_one_is_found_out_and_the_newer_one_too(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.READ_AGAIN_S", 0.01)
    old, new = tmp_path / "old.db", tmp_path / "new.db"

    def save(copy: Path) -> None:
        with database_connection().cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(copy)])

    def put(copy: Path) -> None:
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"cluster.db{suffix}").unlink(missing_ok=True)
        copy.replace(tmp_path / "cluster.db")

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await host.run_elsewhere(lambda: save(old))
            await broker.propose(topic("newer"))
            await host.run_elsewhere(lambda: save(new))

            put(old)
            await regressed(host)
            put(new)
            await host.until(lambda: host.store.regressed is None)
            (accepted,) = await broker.propose(topic("after"))

            assert not accepted.error
            await host.until(lambda: {"newer", "after"} <= set(host.store.image.topics))

    cluster_id = new_cluster()
    asyncio.run(story())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_nothing_is_written_once_an_old_file_is_in_the_place_of_a_running_one(
    database: str, tmp_path: Path
) -> None:
    old = tmp_path / "old.db"

    def save() -> None:
        with database_connection().cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(old)])

    def replace() -> None:
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"cluster.db{suffix}").unlink(missing_ok=True)
        old.replace(tmp_path / "cluster.db")

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await host.run_elsewhere(save)
            await broker.propose(topic("newer"))
            position = host.store.image.position

            replace()
            (refused,) = await broker.propose(topic("lost"))
            await regressed(host)

            assert "METADATA_REGRESSED" in refused.message
            assert host.store.image.position == position

    cluster_id = new_cluster()
    asyncio.run(story())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_reading_waits_for_no_writer_and_a_proposal_for_as_long_as_it_may(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", 0.05)
    monkeypatch.setattr("brokers.controlplane.lanes.PROPOSAL_LOCK_S", 0.1)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            writer = Turn(tmp_path / "cluster.db", is_urgent=False)
            writer.take(SOON_S)
            history = await host.store.ask(read_all, cluster_id=cluster_id)
            with pytest.raises(ConnectionError):
                await broker.propose(topic("not-now"))
            writer.close()
            monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", SOON_S)
            (accepted,) = await broker.propose(topic("later"))

            assert history.image.brokers == host.store.image.brokers
            assert not accepted.error

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_fence_is_not_lost_while_the_database_is_set_back(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.membership.FIRST_PAUSE_S", 0.01)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            refused = asyncio.Event()
            write = host.store.write

            async def write_or_tell(*args: Any, **kwargs: Any) -> Any:
                try:
                    return await write(*args, **kwargs)
                except MetadataRegressed:
                    refused.set()
                    raise

            monkeypatch.setattr(host.store, "write", write_or_tell)
            host.store.regressed = MetadataRegressed(Position(), Position())
            broker.attachment.close(is_dead=True)
            async with asyncio.timeout(SOON_S):
                await refused.wait()
            host.store.regressed = None
            await host.until(lambda: not is_serving(host))

    cluster_id = new_cluster()
    asyncio.run(story())


@pytest.mark.slow
@requires("postgresql")
def test_brokers_are_served_while_the_database_is_away(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", 0.5)

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await asyncio.to_thread(own_postgres.stop)
            with pytest.raises(ConnectionError):
                await broker.propose(topic("not-now"))
            reader = LocalBroker(host)
            async with aclosing(reader.attachment.follow(Position())) as updates:
                assert isinstance((await take(updates, 1))[0], ClusterImage)
            await asyncio.to_thread(own_postgres.start)
            monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", SOON_S)
            (outcome,) = await broker.propose(topic("later"))
            await host.until(lambda: "later" in host.store.image.topics)
            assert not outcome.error
            assert is_serving(host)

    with postgres_database(own_postgres):
        cluster_id = new_cluster()
        asyncio.run(story())


@pytest.mark.slow
@requires("postgresql")
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_database_that_takes_no_writes_is_away_for_writers(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.store.PATIENCE_S", 1.0)

    def refuse_writes() -> None:
        with database_connection().cursor() as cursor:
            name = database_connection().settings_dict["NAME"]
            cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            await host.store.ask(refuse_writes)
            host.store.lanes.reconnect()
            with pytest.raises(ConnectionError, match="read-only"):
                await broker.propose(topic("not-now"))
            # Nothing else has ended.
            assert not host.following.done()

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_database_that_comes_back_older_gives_out_no_producer_id_twice(database: str) -> None:
    def set_back() -> None:
        models.ProducerIds.objects.update(next_id=0)

    def not_now() -> None:
        raise OperationalError("the database is away")

    async def first_of_block(broker: LocalBroker) -> int:
        (outcome,) = await broker.propose(AllocateProducerIds())
        assert isinstance(outcome.result, ProducerIdsResult)
        return outcome.result.first

    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            before = [await first_of_block(broker) for _ in range(2)]
            with pytest.raises(ConnectionError):
                await host.store.ask(not_now)
            await host.run_elsewhere(set_back)

            after = [await first_of_block(broker) for _ in range(2)]

        assert before[1] == before[0] + 1000
        # Far away, since other hosts may have been given the blocks that follow.
        assert after[0] > before[1] + 1000
        assert after[1] == after[0] + 1000

    cluster_id = new_cluster()
    asyncio.run(story())


def test_a_feed_that_could_not_be_opened_is_opened_later(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with running_host(cluster_id) as host, serving_broker(host) as broker:
            feed = type(make_feed())
            attempts: list[bool] = []
            opened, has_news = feed.open, feed.has_news

            def fail_once_more(self: Feed) -> None:
                attempts.append(True)
                if len(attempts) < 3:
                    self.close()
                    raise OperationalError("the database is away")
                opened(self)

            def fail_first(self: Feed) -> bool:
                if not attempts:
                    raise OperationalError("the database is away")
                return has_news(self)

            monkeypatch.setattr(feed, "open", fail_once_more)
            monkeypatch.setattr(feed, "has_news", fail_first)
            async with asyncio.timeout(SOON_S):
                while len(attempts) < 3 and not host.following.done():
                    await asyncio.wait([host.following], timeout=0.01)
            await broker.propose(topic("after"))

            assert not host.following.done()
            await host.until(lambda: "after" in host.store.image.topics)

    cluster_id = new_cluster()
    asyncio.run(story())
