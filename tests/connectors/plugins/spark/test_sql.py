"""Queries over a running cluster and a real Spark, batch by batch."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from connectors.plugins.spark.sql import SparkSql, SparkSqlTask
from connectors.sdk.errors import ConfigError, ConnectorError, DataError, RetriableError
from connectors.sdk.testing import parse_config
from tests.connectors.plugins.spark.jobs import SENT_MS, JobContext, end_in_the_middle, send
from tests.extras import requires
from tests.spark.topics import create

pytestmark = [requires("java", "spark"), pytest.mark.slow]


def config(context: JobContext, **more: str) -> dict[str, str]:
    told = {
        "views": f"orders={context.topic}",
        "view.schemas": "orders: id BIGINT, customer STRING, total DOUBLE",
        "batch.max.wait.ms": "0",
    }
    return {**told, **{name.replace("_", "."): text for name, text in more.items()}}


def run(context: JobContext, told: Mapping[str, str]) -> None:
    """Run one slice: until nothing is new."""
    task = SparkSqlTask()
    task.start(context, parse_config(SparkSql.definition(), told))
    while task.run():
        pass
    task.stop()


def records(context: JobContext, topic: str) -> list[tuple[bytes | None, Any]]:
    client = Consumer({"bootstrap.servers": context.bootstrap, "group.id": "look"})
    try:
        _, end = client.get_watermark_offsets(Place(topic, 0))
        client.assign([Place(topic, 0, 0)])
        found: list[Any] = []
        while len(found) < end:
            found += client.consume(end - len(found), timeout=30)
        return [(one.key(), json.loads(one.value())) for one in found]
    finally:
        client.close()


def write_customers(spark: Any, home: Path) -> None:
    rows = [("a", "Ann"), ("b", "Bob")]
    folder = home / "files" / "lake" / "customers"
    spark.createDataFrame(rows, "id STRING, name STRING").write.parquet(str(folder))


def test_rows_become_records_of_a_topic(context: JobContext, unique: Callable[[str], str]) -> None:
    out = create(context.bootstrap, unique("out"))
    told = config(
        context,
        query="SELECT id, upper(customer) AS who, total FROM orders WHERE id > 1",
        output_topic=out,
        output_key="WHO",
    )
    send(context, {"id": 1, "customer": "a"}, {"id": 2, "customer": "b"}, None, b"no json")

    run(context, told)
    send(context, {"id": 3, "total": 1.5}, partition=1)
    run(context, told)

    assert records(context, out) == [
        (b"B", {"id": 2, "who": "B", "total": None}),
        (None, {"id": 3, "who": None, "total": 1.5}),
    ]
    assert [record.offset for record in context.refused] == [3]
    assert context.counts == {"read": 5, "written": 2, "skipped": 1}
    assert [(one.records, one.rows, one.newest_ms) for one in context.batches] == [
        (4, 1, SENT_MS),
        (1, 1, SENT_MS),
    ]
    assert sorted(context.told.values()) == [1, 4]


def test_rows_of_a_topic_and_a_table_lie_once_in_a_delta_table(
    spark: Any, home: Path, context: JobContext, unique: Callable[[str], str]
) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    write_customers(spark, home)
    context.topics = (create(context.bootstrap, unique("lines")),)
    told = config(
        context,
        views=f"orders={context.topic},lines={context.topics[0]}",
        view_schemas="orders: id BIGINT, customer STRING; lines: string",
        tables="customers=lake/customers",
        query=(
            "SELECT o.id, c.name, o._offset FROM orders o LEFT JOIN customers c"
            " ON o.customer = c.id UNION ALL SELECT CAST(value AS BIGINT), 'line', _offset"
            " FROM lines"
        ),
        table_path="lake/named",
        table_format="delta",
    )
    send(context, {"id": 1, "customer": "a"}, {"id": 2, "customer": "x"})
    # The slice ends behind the write, before the rows are in the table.
    context.asked = 2
    with pytest.raises(RetriableError):
        run(context, told)
    context.asked = 10_000
    send(context, b"7", topic=context.topics[0])
    run(context, told)

    rows = DeltaTable(str(home / "files/lake/named")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["name"], row["_offset"]) for row in rows) == [
        (1, "Ann", 0),
        (2, None, 1),
        (7, "line", 0),
    ]


def test_a_query_that_is_refused_ends_the_task_before_a_record_is_there(
    context: JobContext,
) -> None:
    for query, words in (
        ("SELECT count(*) FROM orders", "write a stream"),
        ("SELECT reflect('java.lang.System', 'getenv') FROM orders", "reflect"),
        ("SELECT * FROM text.`/etc/passwd`", "neither a view nor a table"),
    ):
        with pytest.raises(ConfigError, match=words):
            run(context, config(context, query=query, output_topic="out"))
    with pytest.raises(ConnectorError, match="PARSE_SYNTAX_ERROR"):
        run(context, config(context, query="SELECT id,, FROM orders", output_topic="out"))


def test_nothing_is_written_where_a_record_may_not_be_left_out(
    context: JobContext, unique: Callable[[str], str]
) -> None:
    out = create(context.bootstrap, unique("out"))
    context.is_tolerant = False
    send(context, {"id": 1}, b"no json")

    with pytest.raises(DataError):
        run(context, config(context, query="SELECT id FROM orders", output_topic=out))

    assert records(context, out) == []


def test_a_partition_that_begins_at_its_end_begins_there_once(
    context: JobContext, unique: Callable[[str], str]
) -> None:
    out = create(context.bootstrap, unique("out"))
    told = config(context, query="SELECT id FROM orders", output_topic=out)
    context.begins_at_end = True
    send(context, {"id": 1})
    run(context, told)
    send(context, {"id": 2})

    run(context, told)

    assert records(context, out) == [(None, {"id": 2})]


def test_tables_that_cannot_be_read_right_are_refused(home: Path, context: JobContext) -> None:
    told = config(
        context,
        tables="c=lake/c",
        query="SELECT o.id FROM orders o JOIN c USING (id)",
        output_topic="out",
    )
    send(context, {"id": 1})

    with pytest.raises(ConnectorError, match="there is no table lake/c"):
        run(context, told)
    (home / "files/lake/c/_delta_log").mkdir(parents=True)
    with pytest.raises(ConnectorError, match="belongs to a Delta table"):
        run(context, told)


def test_a_topic_made_anew_that_has_grown_past_its_offset_is_queried_from_its_start(
    context: JobContext, unique: Callable[[str], str]
) -> None:
    out = create(context.bootstrap, unique("out"))
    told = config(context, query="SELECT id FROM orders", output_topic=out)
    send(context, {"id": 1}, {"id": 2})
    run(context, told)

    admin = AdminClient({"bootstrap.servers": context.bootstrap})
    admin.delete_topics([context.topic])[context.topic].result()
    create(context.bootstrap, context.topic, partitions=2)
    send(context, {"id": 3}, {"id": 4}, {"id": 5})
    run(context, told)

    assert sorted(value["id"] for _, value in records(context, out)) == [1, 2, 3, 4, 5]
    assert sorted(context.told.values()) == [0, 3]


def test_a_batch_for_a_topic_in_which_the_worker_ended_is_tried_again_smaller(
    context: JobContext, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = create(context.bootstrap, unique("out"))
    told = config(context, query="SELECT id FROM orders", output_topic=out, batch_max_records="8")
    send(context, *({"id": number} for number in range(12)))

    end_in_the_middle(monkeypatch, lambda: run(context, told))
    run(context, told)

    assert sorted(value["id"] for _, value in records(context, out)) == list(range(12))
    assert "it had 8 offsets, and is tried again with 2" in context.lines[0]
