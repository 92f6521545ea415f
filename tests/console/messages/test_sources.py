"""Pages of records out of a real broker."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from brokers.cluster.image import Broker
from console.messages.browse import send_page
from console.messages.lines import Forms
from console.messages.opening import Order
from console.messages.places import Places
from console.messages.question import Mode, Question, Window
from console.messages.sources import source_of
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.producer import TopicWriter
from gateway.kafka.readers.admission import admit
from gateway.kafka.readers.pipe import Pipe
from gateway.kafka.values import NewRecord
from tests.builders.messages import CLUSTER
from tests.fakes.broker_thread import broker_beside
from tests.fakes.readers import FakeReader

pytestmark = pytest.mark.slow

PARTITIONS = 3
RECORDS = 2000
FORMS = Forms()
ADMITTED = admit(FakeReader(), ["orders"])


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": PARTITIONS}) as broker:
        producer = TopicWriter(Connection(bootstrap=broker.bootstrap), "orders")
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                producer.send(
                    NewRecord(
                        value=b"%d" % number,
                        key=None if number % 2 else b"",
                        headers=(("number", b"%d" % number),),
                        partition=partition,
                        timestamp_ms=1 + PARTITIONS * number + partition,
                    )
                )
        producer.flush()
        yield broker.bootstrap


def places(bootstrap: str) -> Places:
    host, _, port = bootstrap.rpartition(":")
    leader = Broker(id=1, epoch=1, host=host, port=int(port), is_fenced=False)
    return Places(
        topic="orders",
        bootstrap=bootstrap,
        leaders=dict.fromkeys(range(PARTITIONS), leader),
        dark={},
    )


def lines(bootstrap: str, mode: Mode, **fields: Any) -> list[dict[str, Any]]:
    async def told() -> list[dict[str, Any]]:
        pipe, where = Pipe(max_bytes=2**40), places(bootstrap)
        asked = Question(cluster=CLUSTER, topic="orders", mode=mode, **fields)
        order = Order(
            admission=ADMITTED,
            question=asked,
            places=where,
            source=source_of(ADMITTED, where),
            pipe=pipe,
        )
        send_page(order, write=FORMS.line)
        pipe.finish()
        return [json.loads(line) for line in b"".join(await pipe.take()).splitlines()]

    return asyncio.run(told())


def places_told(told: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(x["partition"], int(x["offset"])) for x in told if x["type"] == "record"]


def test_the_newest_records_of_all_partitions_come_newest_first(bootstrap: str) -> None:
    told = lines(bootstrap, Mode.NEWEST, limit=50)

    expected = [(p, n) for n in range(RECORDS - 1, -1, -1) for p in (2, 1, 0)]
    assert places_told(told) == expected[:50]
    assert [part["end"] for part in told[0]["partitions"]] == [str(RECORDS)] * PARTITIONS


def test_the_oldest_records_of_all_partitions_come_oldest_first(bootstrap: str) -> None:
    told = lines(bootstrap, Mode.OLDEST, limit=50)

    expected = [(p, n) for n in range(RECORDS) for p in range(PARTITIONS)]
    assert places_told(told) == expected[:50]


def test_records_come_from_an_offset_and_from_a_time_on(bootstrap: str) -> None:
    from_offset = lines(bootstrap, Mode.OFFSET, start=RECORDS - 2)
    from_time = lines(bootstrap, Mode.OLDEST, window=Window(since=PARTITIONS * (RECORDS - 2) + 1))

    expected = [(p, n) for n in (RECORDS - 2, RECORDS - 1) for p in range(PARTITIONS)]
    assert places_told(from_offset) == places_told(from_time) == expected
    assert from_time[-1]["verdict"] == "complete"


def test_a_record_has_its_headers_and_tells_null_from_empty(bootstrap: str) -> None:
    # Progress comes between records where the machine is busy.
    records = [x for x in lines(bootstrap, Mode.OLDEST, limit=6) if x["type"] == "record"]

    first, fourth = records[0], records[3]
    assert (first["key"]["kind"], fourth["key"]["kind"]) == ("empty", "null")
    assert first["headers"][0]["name"] == "number"
    assert first["headers"][0]["value"]["text"] == "0"
    assert first["timestamp_type"] == "create"


def test_a_cluster_that_is_away_is_a_failure_within_moments() -> None:
    source = source_of(ADMITTED, places("127.0.0.1:1"))

    with pytest.raises(KafkaFailure, match="no broker answers there"):
        source.bounds([0])
