"""A broker that is killed between a batch and its answer loses no record and has none twice."""

from pathlib import Path

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection as Client
from gateway.kafka.consumer import Reader
from gateway.kafka.values import NewTopic, Span
from spark_integration.datasource.encode import CODECS, NO_HEADERS
from spark_integration.datasource.producer import IdempotentProducer
from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.connection import Connection
from spark_integration.datasource.wire.messages import Api, TopicPartition
from spark_integration.datasource.wire.settings import parse_settings
from tests.cluster import running_cluster
from tests.scale import count

pytestmark = pytest.mark.slow

KILLS = count(1, 2, long=20)
PARTITIONS = 3
# Records of each partition between two kills, in some batches.
ROWS = 2000


def read(bootstrap: str, partition: int) -> list[int]:
    spans = [Span(partition=partition, start=0)]
    with Reader(Client(bootstrap=bootstrap), "t", spans, stops_at_end=True) as reader:
        return [int(record.value or b"-1") for batch in reader.batches() for record in batch]


def test_records_are_there_once_and_in_order_after_every_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_cluster(tmp_path / "home", brokers=1) as cluster:
        Admin(Client(bootstrap=cluster.bootstrap)).create(
            [NewTopic(name="t", partitions=PARTITIONS)]
        )
        send, left = Connection.send, [0]

        def send_and_kill(self: Connection, api: Api, body: bytes) -> None:
            send(self, api, body)
            if api is messages.PRODUCE:
                left[0] -= 1
                if left[0] == 0:
                    # It may have taken the batch, a part of what was sent, or nothing.
                    cluster.kill("broker-1")

        monkeypatch.setattr(Connection, "send", send_and_kill)
        with Cluster(parse_settings({"bootstrap.servers": cluster.bootstrap})) as wire:
            producer = IdempotentProducer(
                wire,
                codec=CODECS["lz4"],
                batch_bytes=4000,
                buffer_bytes=1_000_000,
                delivery_seconds=120,
            )
            for kill in range(KILLS + 1):
                # In another place among the requests each time; none at last.
                left[0] = 1 + kill % 5 if kill < KILLS else 0
                for partition in range(PARTITIONS):
                    rows = (b"%d" % number for number in range(kill * ROWS, (kill + 1) * ROWS))
                    where = TopicPartition("t", partition)
                    producer.append(where, [(None, row, NO_HEADERS) for row in rows])
                producer.flush()

        every = list(range((KILLS + 1) * ROWS))
        assert [read(cluster.bootstrap, number) == every for number in range(PARTITIONS)] == [
            True
        ] * PARTITIONS
