"""Orders get the current product; orders without one go to topics of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, Span
from tests.extras import requires
from tests.spark.topics import create
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]


def order(product: str, count: int = 2) -> bytes:
    return json.dumps({"id": "o", "product": product, "count": count, "at": "now"}).encode()


class Shop:
    def __init__(self, bootstrap: str, unique: Callable[[str], str]) -> None:
        self.connection = Connection(bootstrap=bootstrap)
        self.orders, self.products = create(bootstrap, unique("o")), create(bootstrap, unique("p"))
        enriched, unmatched, bad = (create(bootstrap, unique(name)) for name in ("e", "u", "b"))
        self.sinks = (enriched, unmatched, bad)

    def put(self, topic: str, key: str, value: bytes | None) -> None:
        producer = TopicWriter(self.connection, topic)
        producer.send(NewRecord(key=key.encode(), value=value))
        producer.flush()

    def read(self, topic: str) -> list[tuple[str, bytes]]:
        spans = [Span(partition=0, start=0)]
        with Reader(self.connection, topic, spans, stops_at_end=True) as reader:
            records = [record for batch in reader.batches() for record in batch]
        return [((record.key or b"").decode(), record.value or b"") for record in records]


def test_a_product_that_changes_counts_from_the_next_batch_on(
    spark: Any, unique: Callable[[str], str], tmp_path: Path
) -> None:
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 (an extra)
    from spark_integration.examples import enrichment  # noqa: PLC0415 (an extra)

    spark.dataSource.register(SamsaDataSource)
    shop = Shop(shared_home().bootstrap, unique)
    kafka = {"kafka.bootstrap.servers": shop.connection.bootstrap}
    shop.put(shop.products, "p1", b'{"name":"cup","price":7.5}')
    shop.put(shop.products, "p2", b'{"name":"pot","price":20}')
    shop.put(shop.orders, "1", order("p1"))
    shop.put(shop.orders, "2", order("p3"))
    shop.put(shop.orders, "3", b"no order")

    [query] = enrichment.start(
        spark,
        kafka,
        orders=shop.orders,
        products=shop.products,
        sinks=shop.sinks,
        checkpoint=str(tmp_path),
        every_s=1,
    )
    try:
        query.processAllAvailable()
        shop.put(shop.products, "p1", b'{"name":"large cup","price":8}')
        shop.put(shop.products, "p2", None)
        shop.put(shop.products, "p3", b'{"name":"tray","price":1.5}')
        for number, product in enumerate(("p1", "p2", "p3"), start=4):
            shop.put(shop.orders, str(number), order(product))
        query.processAllAvailable()
    finally:
        query.stop()

    enriched, unmatched, bad = (shop.read(topic) for topic in shop.sinks)
    whole = {key: json.loads(value) for key, value in enriched}
    assert {key: (row["name"], row["total"]) for key, row in whole.items()} == {
        "1": ("cup", 15.0),
        "4": ("large cup", 16.0),
        "6": ("tray", 3.0),
    }
    assert unmatched == [("2", order("p3")), ("5", order("p2"))]
    assert bad == [("3", b"no order")]
    assert enrichment.look(spark, kafka, shop.sinks) == [
        f"{topic}  {count} orders" for topic, count in zip(shop.sinks, (3, 2, 1), strict=True)
    ]
    told = [enrichment.tell(progress) for progress in query.recentProgress]
    assert "3 orders joined with the products of this moment" in told
