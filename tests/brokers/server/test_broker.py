"""A whole broker in this process: when it serves, what it says, and how it ends."""

import asyncio
import errno
import socket
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brokers.clock import SystemClock
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import AlterConfigs, ConfigEdit, ConfigOperation, DeleteTopic
from brokers.config import BrokerConfig
from brokers.protocol.errors import KafkaError
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.metadata import MetadataRequest
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.server.broker import Broker, DiskFailing, StartFailed, intervals
from brokers.server.logs import Log
from brokers.server.served import HANDLERS, LANES
from brokers.storage.disk_failures import MAX_FAILURES, note_failure
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import LocalFiles
from brokers.storage.names import CLEAN_SHUTDOWN
from tests.builders.logs import batch
from tests.fakes.broker import running_broker
from tests.fakes.faulty_files import Fault, FaultyFiles
from tests.fakes.listener import ByteClient, until
from tests.fakes.twin import Door, Twin


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def produce(*, acks: int = -1, topic: str = "orders") -> ProduceRequest:
    now_ms = SystemClock().now_ms()
    data = PartitionProduceData(index=0, records=batch(records=3, timestamp=now_ms))
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch(offset: int = 0, *, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
    )


async def produced(client: ByteClient, request: ProduceRequest | None = None) -> Any:
    answer = await client.ask(request or produce(), 9)
    return answer.responses[0].partition_responses[0]


def test_what_is_produced_can_be_fetched(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()

            answer = await produced(client)
            fetched = await client.ask(fetch(), 11)

            assert (answer.error_code, answer.base_offset) == (0, 0)
            partition = fetched.responses[0].partitions[0]
            assert partition.high_watermark == 3
            assert len(partition.records) == len(batch(records=3))
            log = running.context.replicas.leader("orders", 0).log
            assert log.segments.active.file.pins == 0
            await client.close()

    run(story())


def test_a_reader_that_leaves_while_it_waits_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            reader, writer = await running.connect(), await running.connect()
            reader.send(fetch(max_wait_ms=30_000), 11)
            partition = running.context.replicas.leader("orders", 0)
            await until(lambda: partition.watchers)

            await reader.close()
            await until(lambda: not partition.watchers)

            assert (await produced(writer)).error_code == 0
            await writer.close()

    run(story())


def test_a_stop_lets_a_reader_that_waits_have_its_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            client.send(fetch(max_wait_ms=300), 11)
            partition = running.context.replicas.leader("orders", 0)
            await until(lambda: partition.watchers)

            running.broker.stop()

            assert len(await client.frame()) > 0
            assert await client.is_closed()
            await client.close()
        assert running.broker.is_clean
        assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()

    run(story())


class SlowToLetIn(Door):
    """A store that takes its time to let the broker in, after all was applied."""

    held_back = -1
    is_slow = True

    def applied(self, version: int) -> None:
        self.held_back = version
        if not self.is_slow:
            super().applied(version)


def test_the_door_opens_when_the_cluster_has_let_the_broker_in(tmp_path: Path) -> None:
    async def story() -> None:
        twin = Twin()
        twin.is_away = True
        clock = SystemClock()
        config = BrokerConfig(agent_socket="", log_dir=str(tmp_path / "data"))
        store = SlowToLetIn(twin)
        broker = Broker(
            config,
            store=store,
            modules=HANDLERS,
            lanes=LANES,
            clock=clock,
            log=Log(clock, write=lambda _line: None),
        )
        async with broker.running():
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", broker.port)

            twin.is_away = False
            await until(lambda: store.held_back >= 0)
            assert broker.context.is_serving
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", broker.port)
            assert not broker.ready.done()

            store.is_slow = False
            store.applied(store.held_back)
            async with asyncio.timeout(10):
                assert (await broker.ready).id == 1
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            client = ByteClient(reader, writer)
            metadata = await client.ask(MetadataRequest(topics=None), 5)
            assert [known.node_id for known in metadata.brokers] == [metadata.controller_id] == [1]
            broker.stop()
            await client.close()

    run(story())


def test_a_port_that_another_program_opened_meanwhile_ends_the_start(tmp_path: Path) -> None:
    async def story() -> None:
        twin = Twin()
        twin.is_away = True
        clock = SystemClock()
        broker = Broker(
            BrokerConfig(agent_socket="", log_dir=str(tmp_path / "data")),
            store=twin.attach(),
            modules=HANDLERS,
            lanes=LANES,
            clock=clock,
            log=Log(clock, write=lambda _line: None),
        )
        living = asyncio.create_task(broker.run())
        await until(lambda: broker.port)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", broker.port))
            other.listen()
            twin.is_away = False

            with pytest.raises(StartFailed, match=f"port {broker.port} .* is taken"):
                await living

    run(story())


@pytest.mark.parametrize("broker", ["", "1"], ids=["all brokers", "one"])
def test_limits_that_are_set_while_a_broker_runs_hold_at_once(tmp_path: Path, broker: str) -> None:
    wanted = {"max.connections.per.ip": "7", "log.cleaner.backoff.ms": "500"}

    async def story() -> None:
        async with running_broker(tmp_path) as running:
            listener = running.broker.listener
            before = listener.limits
            edits = tuple(
                ConfigEdit(key=key, operation=ConfigOperation.SET, value=value)
                for key, value in wanted.items()
            )
            running.twin.propose_now(
                AlterConfigs(
                    resource_type=ResourceType.BROKER, name=broker, edits=edits, replaces_all=False
                )
            )
            await until(lambda: listener.limits != before)
            assert listener.limits == replace(before, max_connections_per_ip=7)
            assert running.broker.compactor.backoff_seconds == 0.5

    run(story())


def test_retention_runs_as_often_as_a_broker_is_configured() -> None:
    config = BrokerConfig(agent_socket="", log_dir="")

    assert intervals(config).retention == 300
    often = replace(config, defaults={"log.retention.check.interval.ms": "1000"})
    assert intervals(often).retention == 1


def test_a_topic_that_is_deleted_while_it_is_read_goes(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            await produced(client)

            topic = running.twin.image.topics["orders"]
            from_twin = running.twin.propose_now(DeleteTopic(name="orders"))
            await running.context.wait_applied(running.twin.image.version)

            assert from_twin[0].error == 0
            assert topic.id in running.context.image.deleted
            with pytest.raises(KafkaError):
                running.context.replicas.leader("orders", 0)
            await client.close()

    run(story())


def test_the_second_start_finds_what_the_first_one_left(tmp_path: Path) -> None:
    async def story() -> None:
        twin = Twin()
        async with running_broker(tmp_path, twin=twin, topics={"orders": 1}) as first:
            client = await first.connect()
            await produced(client)
            await client.close()

        async with running_broker(tmp_path, twin=twin) as second:
            client = await second.connect()
            fetched = await client.ask(fetch(), 11)

            assert second.ready.id == first.ready.id
            assert fetched.responses[0].partitions[0].high_watermark == 3
            await client.close()

    run(story())


def test_a_log_dir_in_use_ends_the_start_with_its_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path):
            with pytest.raises(StartFailed, match=r"data is in use by another broker"):
                async with running_broker(tmp_path):
                    pass

    run(story())


def test_an_unusable_log_dir_ends_the_start_with_its_name(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "data").write_text("a file, not a folder", encoding="ascii")

        with pytest.raises(StartFailed, match="data cannot be used"):
            async with running_broker(tmp_path):
                pass

    run(story())


def test_a_disk_that_failed_too_often_is_not_trusted_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path):
            pass
        failure = LogDirFailed("t-0/0.log", "fsync", OSError(errno.EIO, "Input/output error"))
        now_ms = SystemClock().now_ms()
        for _ in range(MAX_FAILURES - 1):
            note_failure(LocalFiles(), str(tmp_path / "data"), failure, now_ms)
        async with running_broker(tmp_path):
            pass
        note_failure(LocalFiles(), str(tmp_path / "data"), failure, now_ms)

        with pytest.raises(DiskFailing, match=r"failed 3 times .* remove .*samsa\.disk-failures"):
            async with running_broker(tmp_path):
                pass

    run(story())


def test_a_log_dir_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, twin=Twin(cluster_id="one-cluster-0000000000")):
            pass

        with pytest.raises(StartFailed, match="INCONSISTENT_CLUSTER_ID"):
            async with running_broker(tmp_path, twin=Twin(cluster_id="other-cluster-00000000")):
                pass

    run(story())


def test_a_disk_that_fails_ends_the_broker_without_a_clean_mark(tmp_path: Path) -> None:
    class DiesOnSync(FaultyFiles):
        is_dead = False

        def datasync(self, fd: int) -> None:
            if self.is_dead:
                raise OSError(errno.EIO, "Input/output error")
            super().datasync(fd)

    async def story() -> None:
        files = DiesOnSync()
        async with running_broker(tmp_path, topics={"orders": 1}, files=files) as running:
            client = await running.connect()
            files.is_dead = True

            client.send(produce(), 9)

            assert await client.is_closed()
            with pytest.raises(LogDirFailed):
                await running.living
            await client.close()
        assert not running.broker.is_clean
        assert not (tmp_path / "data" / CLEAN_SHUTDOWN).exists()

    run(story())


def test_damage_is_reported_once_for_each_log(tmp_path: Path) -> None:
    async def story() -> None:
        twin = Twin()
        async with running_broker(tmp_path, twin=twin, topics={"orders": 2}) as first:
            client = await first.connect()
            for _ in range(3):
                await produced(client)
            await client.close()
        path = tmp_path / "data" / "orders-0" / f"{0:020}.log"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
        (tmp_path / "data" / CLEAN_SHUTDOWN).unlink()
        (tmp_path / "data" / "recovery-point-offset-checkpoint").write_text(
            "0\n2\norders 0 9\norders 1 0\n", encoding="ascii"
        )

        async with running_broker(tmp_path, twin=twin) as second:
            told = [line for line in second.lines if line["event"].startswith("log.")]

        assert [(line["event"], line["folder"]) for line in told] == [("log.damaged", "orders-0")]

    run(story())


def test_a_broker_that_is_given_up_ends_in_good_order(tmp_path: Path) -> None:
    async def story() -> None:
        door, clock = Twin().attach(), SystemClock()
        config = BrokerConfig(agent_socket="", log_dir=str(tmp_path / "data"), bind="127.0.0.1")
        log = Log(clock, write=lambda _line: None)
        broker = Broker(config, store=door, modules=HANDLERS, clock=clock, log=log)
        living = asyncio.create_task(broker.run())
        await broker.ready

        living.cancel()
        await asyncio.wait([living])

        door.kill()
        assert living.cancelled()
        assert broker.is_clean
        assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()

    run(story())


def test_a_disk_that_fails_in_the_last_flush_is_told_of(tmp_path: Path) -> None:
    async def story() -> None:
        files, live = FaultyFiles(), {"samsa.durability": "replicated"}
        async with running_broker(
            tmp_path, topics={"orders": 1}, configs=live, files=files
        ) as running:
            client = await running.connect()
            await produced(client)
            files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"datasync"})))

            running.broker.stop()

            with pytest.raises(LogDirFailed, match="fsync"):
                await running.living
            await client.close()
        assert not (tmp_path / "data" / CLEAN_SHUTDOWN).exists()

    run(story())
