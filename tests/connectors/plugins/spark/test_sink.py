"""The sink over a running cluster and a real Spark, slice by slice, ended between any two steps."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyarrow import parquet

from connectors.plugins.spark import bad_records
from connectors.plugins.spark.batch_size import BatchTooLarge
from connectors.plugins.spark.deadlines import limited
from connectors.plugins.spark.plain_rows import PlainRows
from connectors.plugins.spark.sink import SparkSink, SparkSinkTask
from connectors.sdk import contract
from connectors.sdk.connector import Parsed
from connectors.sdk.errors import ConnectorError, DataError, RetriableError
from connectors.sdk.testing import parse_config
from spark_integration.jobs.session import cancel_jobs
from tests.connectors.plugins.spark.jobs import SENT_MS, JobContext, end_in_the_middle, send
from tests.extras import requires
from tests.fakes.broker_thread import broker_beside
from tests.spark.topics import create

pytestmark = [requires("java", "spark"), pytest.mark.slow]


def config(**more: str) -> dict[str, str]:
    told = {"table.path": "lake/orders", "batch.max.wait.ms": "0"}
    return {**told, **{k.replace("_", "."): v for k, v in more.items()}}


def run(context: JobContext, told: Mapping[str, str]) -> None:
    """Run one slice: until nothing is new."""
    task = SparkSinkTask()
    task.start(context, parse_config(SparkSink.definition(), told))
    while task.run():
        pass
    task.stop()


def table(spark: Any, home: Path) -> list[dict[str, Any]]:
    frame = spark.read.option("mergeSchema", "true").parquet(str(home / "files/lake/orders"))
    return [row.asDict(recursive=True) for row in frame.collect()]


def delta_rows(home: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable  # noqa: PLC0415

    read = DeltaTable(str(home / "files/lake/orders")).to_pyarrow_table()
    return list(read.to_pylist())


def iceberg_rows(home: Path, name: str = "default.orders") -> list[dict[str, Any]]:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

    with closing(SqlCatalog("samsa", uri=f"sqlite:///{home / 'files/iceberg.db'}")) as catalog:
        read = catalog.load_table(name).scan().to_arrow()
    return list(read.to_pylist())


def test_its_definition_holds_what_every_connector_promises() -> None:
    contract.definition_is_sound(SparkSink)
    contract.tasks_are_told_what_is_defined(SparkSink(), config())


def test_objects_become_rows_whose_columns_are_found_and_grow(
    spark: Any, home: Path, context: JobContext
) -> None:
    send(context, {"id": 1, "name": "a"}, {"id": 2}, None)
    run(context, config())
    send(context, {"id": 3, "tags": ["x"], "deep": {"n": 1.5}}, partition=1)
    run(context, config())

    rows = sorted(table(spark, home), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert (rows[0]["name"], rows[2]["tags"], rows[2]["deep"]) == ("a", ["x"], {"n": 1.5})
    assert (context.counts["read"], context.counts["written"]) == (4, 3)
    assert context.counts["skipped"] == 1
    assert sorted(context.told.values()) == [1, 3]
    folder = home / "files/lake/orders"
    assert context.lines[-1] == f"wrote batch 1 into {folder} (rows: 1, files: 1)"
    first, second = context.batches
    assert [(one.records, one.rows) for one in (first, second)] == [(3, 2), (1, 1)]
    assert {first.newest_ms, second.newest_ms} == {SENT_MS}
    # Columns are looked for before rows are written.
    assert min(first.read_s, first.write_s) > 0
    assert second.ended_ms > first.ended_ms


def test_of_values_that_carry_their_schema_the_fields_become_columns(
    spark: Any, home: Path, context: JobContext
) -> None:
    described = {"type": "struct", "fields": [{"field": "id", "type": "int64", "optional": False}]}
    send(context, {"schema": described, "payload": {"id": 1}})
    run(context, config(include_metadata="true"))
    send(context, {"schema": described, "payload": {"id": 2, "name": "b"}})
    run(context, config(include_metadata="true"))

    rows = sorted(table(spark, home), key=lambda row: row["id"])
    assert [(row["id"], row["name"]) for row in rows] == [(1, None), (2, "b")]
    assert "payload" not in rows[0]
    assert "schema" not in rows[0]
    assert [row["_offset"] for row in rows] == [0, 1]


@pytest.mark.parametrize("is_plain", [True, False])
def test_one_stray_value_of_the_other_kind_changes_no_columns(
    spark: Any, home: Path, context: JobContext, is_plain: bool
) -> None:
    described = {"type": "struct", "fields": [{"field": "id", "type": "int64", "optional": False}]}

    def value(number: int, *, plain: bool) -> dict[str, Any]:
        row = {"id": number}
        return row if plain else {"schema": described, "payload": row}

    send(context, value(1, plain=is_plain))
    run(context, config())
    send(context, {**value(2, plain=not is_plain), "a": 1}, value(3, plain=is_plain))
    run(context, config())

    rows = sorted(table(spark, home), key=lambda row: row["id"])
    assert rows == [{"id": 1}, {"id": 3}]
    assert [record.offset for record in context.refused] == [1]


def test_of_given_columns_a_value_that_carries_its_schema_has_none(
    spark: Any, home: Path, context: JobContext
) -> None:
    described = {"type": "struct", "fields": [{"field": "id", "type": "int64", "optional": False}]}
    about = {"schema": "of what", "payload": None, "id": 2}
    send(context, {"schema": described, "payload": {"id": 1}}, about)
    run(context, config(value_schema="id BIGINT"))

    assert [row["id"] for row in table(spark, home)] == [2]
    assert [record.offset for record in context.refused] == [0]


def test_rows_lie_in_folders_of_their_days_and_columns(
    spark: Any, home: Path, context: JobContext
) -> None:
    send(context, {"id": 1, "country": "DE"}, {"id": 2, "country": "a/b"}, {"id": 3})

    run(
        context,
        config(
            partition_time="day",
            partition_by="country",
            value_schema="id BIGINT, country STRING",
            include_metadata="true",
        ),
    )

    folders = {str(p.parent.relative_to(home / "files/lake/orders")) for p in files(home)}
    assert folders == {
        "day=2023-11-14/country=DE",
        "day=2023-11-14/country=a%2Fb",
        "day=2023-11-14/country=__HIVE_DEFAULT_PARTITION__",
    }
    assert {row["_offset"] for row in table(spark, home)} == {0, 1, 2}


def files(home: Path) -> list[Path]:
    lake = home / "files/lake/orders"
    return [path for path in lake.rglob("*.parquet") if "_samsa" not in path.parts]


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_worker_that_ends_between_any_two_steps_leaves_each_row_once(
    spark: Any, home: Path, context: JobContext, kind: str
) -> None:
    told = config(table_format=kind, value_schema="id BIGINT", batch_max_records="8")
    send(context, *({"id": number} for number in range(12)))
    # Each slice ends one step later than the one before it.
    for steps in range(1, 9):
        context.asked = steps
        try:
            run(context, told)
        except RetriableError:
            continue
        break
    context.asked = 10_000
    send(context, {"id": 12})
    run(context, told)

    found = {"delta": delta_rows, "iceberg": iceberg_rows}.get(kind)
    rows = table(spark, home) if found is None else found(home)
    assert sorted(row["id"] for row in rows) == list(range(13))


def test_a_delta_table_grows_a_column_and_knows_its_batches(
    home: Path, context: JobContext
) -> None:
    told = config(table_format="delta")
    send(context, {"id": 1})
    run(context, told)
    send(context, {"id": 2, "name": "b"})
    run(context, told)

    assert sorted((row["id"], row["name"]) for row in delta_rows(home)) == [(1, None), (2, "b")]


def test_an_iceberg_table_has_all_columns_and_folders_of_some(
    home: Path, context: JobContext
) -> None:
    columns = "id BIGINT, country STRING, total DECIMAL(10,2), tags ARRAY<STRING>, at TIMESTAMP"
    more = "deep STRUCT<n: INT, m: MAP<STRING, DATE>>, small SMALLINT, big FLOAT, is_new BOOLEAN"
    told = config(
        table_format="iceberg",
        partition_time="day",
        partition_by="country,small,total,is_new",
        value_schema=f"{columns}, {more}",
        include_metadata="true",
    )
    full = {"tags": ["x"], "deep": {"n": 1, "m": {"a": "2026-01-31"}}, "at": "2026-01-31T12:00:00Z"}
    countries = ["DE", "a/b", "", "__EMPTY__", None]
    send(context, *({"id": n, "country": c, **full} for n, c in enumerate(countries)))
    send(context, {"id": 5, "country": "DE", "small": -3, "total": "1.50", "is_new": True})
    run(context, told)

    rows = sorted(iceberg_rows(home), key=lambda row: row["id"])
    assert [row["country"] for row in rows] == [*countries, "DE"]
    assert rows[0]["deep"] == {"n": 1, "m": [("a", date(2026, 1, 31))]}
    assert (rows[0]["at"], rows[0]["day"]) == (datetime(2026, 1, 31, 12, tzinfo=UTC), "2023-11-14")
    assert (rows[5]["total"], rows[5]["small"], rows[5]["is_new"]) == (Decimal("1.50"), -3, True)
    assert {(row["_topic"], row["_topic_partition"]) for row in rows} == {(context.topic, 0)}
    assert (home / "files/lake/orders/data/day=2023-11-14/country=a%2Fb").is_dir()


def test_an_iceberg_table_grows_columns_within_columns(home: Path, context: JobContext) -> None:
    told = config(table_format="iceberg")
    send(context, {"id": 1, "deep": {"n": 1}})
    run(context, told)
    send(context, {"id": 2, "name": "b", "deep": {"n": 2, "more": ["x"]}})
    run(context, told)

    rows = sorted(iceberg_rows(home), key=lambda row: row["id"])
    assert [(row["name"], row["deep"]["more"]) for row in rows] == [(None, None), ("b", ["x"])]


def test_values_that_do_not_fit_are_refused_and_the_others_written(
    spark: Any, home: Path, context: JobContext
) -> None:
    two = b'{"id": 7}\n{"id": 8}'
    send(context, {"id": 1}, b"no json", {"id": "x"}, b"[1]", two, {"id": 2, "_samsa_wrong": 1})

    run(context, config(value_schema="id BIGINT"))

    assert sorted(row["id"] for row in table(spark, home)) == [1, 2]
    assert [record.offset for record in context.refused] == [1, 2, 3, 4]
    assert context.refused[0].value == b"no json"


def test_where_no_error_is_tolerated_nothing_of_the_batch_is_in_the_table(
    home: Path, context: JobContext
) -> None:
    context.is_tolerant = False
    send(context, {"id": 1}, b"no json")

    with pytest.raises(DataError, match="not a JSON object"):
        run(context, config(value_schema="id BIGINT"))

    assert files(home) == []
    assert context.told == {}


def test_a_batch_that_is_not_full_waits_for_more(
    spark: Any, home: Path, context: JobContext
) -> None:
    told = config(value_format="string", batch_max_wait_ms="3600000", batch_max_records="3")
    send(context, b"one")
    run(context, told)
    send(context, b"two")
    run(context, told)
    assert [row["value"] for row in table(spark, home)] == ["one"]

    send(context, b"three", b"four")
    run(context, told)

    assert len(table(spark, home)) == 4


def test_texts_become_one_column(spark: Any, home: Path, context: JobContext) -> None:
    send(context, b"one", b"two")

    run(context, config(value_format="string"))

    assert sorted(row["value"] for row in table(spark, home)) == ["one", "two"]


def test_folders_of_metadata_below_a_path_of_any_characters_hold_all_rows(
    home: Path, context: JobContext
) -> None:
    send(context, {"id": 1}, {"id": 2})

    told = {"table.path": "my lake/größe 100%", "partition.by": "_topic", "partition.time": "day"}
    run(context, {**config(include_metadata="true", value_schema="id BIGINT"), **told})

    (folder,) = (home / "files/my lake/größe 100%").glob(f"day=2023-11-14/_topic={context.topic}")
    assert sum(parquet.read_metadata(file).num_rows for file in folder.iterdir()) == 2


def test_no_batch_is_begun_before_the_group_is_told_of_the_last_one(
    spark: Any, home: Path, context: JobContext
) -> None:
    told = config(value_format="string")
    context.is_group_away = True
    send(context, b"one")
    for _ in range(2):
        with pytest.raises(RetriableError, match="cannot commit it"):
            run(context, told)
        send(context, b"two")

    context.is_group_away = False
    run(context, told)

    assert sorted(row["value"] for row in table(spark, home)) == ["one", "two", "two"]


def test_bytes_that_are_no_text_are_refused(spark: Any, home: Path, context: JobContext) -> None:
    send(context, b"one", b"\xff\xfe")

    run(context, config(value_format="string"))

    assert [row["value"] for row in table(spark, home)] == ["one"]
    assert [record.value for record in context.refused] == [b"\xff\xfe"]


def test_a_schema_that_spark_cannot_read_ends_the_task_with_its_words(
    home: Path, context: JobContext
) -> None:
    send(context, {"id": 1})

    with pytest.raises(ConnectorError, match=r"(?i)bigintt"):
        run(context, config(value_schema="id BIGINTT"))


def test_a_folder_outside_of_the_files_is_refused(home: Path, context: JobContext) -> None:
    (home / "files").mkdir()
    (home / "files" / "lake").symlink_to("/tmp")  # noqa: S108 - a way out

    with pytest.raises(ConnectorError, match="symbolic link"):
        run(context, config())


def make_anew(context: JobContext) -> None:
    admin = AdminClient({"bootstrap.servers": context.bootstrap})
    admin.delete_topics([context.topic])[context.topic].result()
    create(context.bootstrap, context.topic, partitions=2)


def test_a_topic_made_anew_that_has_grown_past_its_offset_is_read_from_its_start(
    spark: Any, home: Path, context: JobContext
) -> None:
    told = config(value_schema="id BIGINT")
    send(context, {"id": 1}, {"id": 2})
    run(context, told)

    # The group keeps what it was told, as where a commit comes in behind the deletion.
    make_anew(context)
    send(context, *({"id": number} for number in range(10, 15)))
    run(context, told)

    assert sorted(row["id"] for row in table(spark, home)) == [1, 2, *range(10, 15)]
    assert [line for line in context.lines if "was deleted and recreated since" in line]
    assert sorted(context.told.values()) == [0, 5]


def test_a_topic_made_anew_between_plan_and_read_is_not_read_in_place_of_the_old_one(
    home: Path, context: JobContext
) -> None:
    send(context, {"id": 1})
    context.ids[context.topic] = "AAAAAAAAAAAAAAAAAAAAAQ"

    with pytest.raises(RetriableError, match="was deleted and recreated after its offsets"):
        run(context, config(value_schema="id BIGINT"))

    assert files(home) == []


def test_a_batch_in_which_the_worker_ended_is_tried_again_smaller(
    spark: Any, home: Path, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = config(value_schema="id BIGINT", batch_max_records="8")
    send(context, *({"id": number} for number in range(12)))

    end_in_the_middle(monkeypatch, lambda: run(context, told))
    run(context, told)

    assert sorted(row["id"] for row in table(spark, home)) == list(range(12))
    assert "it had 8 offsets, and is tried again with 2" in context.lines[0]


def test_bad_records_beyond_the_bound_all_come_to_the_dead_letters(
    spark: Any, home: Path, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_records, "MAX_BYTES", 100)
    send(context, {"id": 1}, *[b"x" * 60] * 5, {"id": 2})

    run(context, config(value_schema="id BIGINT"))

    assert sorted(row["id"] for row in table(spark, home)) == [1, 2]
    assert sorted(record.offset for record in context.refused) == [1, 2, 3, 4, 5]


def test_a_record_of_18_mb_becomes_a_row(home: Path, context: JobContext) -> None:
    large = {"max.message.bytes": "20000000"}
    admin = AdminClient({"bootstrap.servers": context.bootstrap})
    topic = NewTopic(f"{context.topic}-large", 1, 1, config=large)
    admin.create_topics([topic])[topic.topic].result()
    context.topic = topic.topic
    producer = Producer({"bootstrap.servers": context.bootstrap, "message.max.bytes": 20_000_000})
    for value in (b"a" * 18_000_000, b"b"):
        producer.produce(context.topic, value)
    assert producer.flush(30) == 0

    run(context, config(value_format="string"))

    found = [row["value"] for path in files(home) for row in parquet.read_table(path).to_pylist()]
    assert sorted(map(len, found)) == [1, 18_000_000]


def test_a_batch_that_is_damaged_on_the_disk_is_named_and_nothing_is_written(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    disk = tmp_path_factory.mktemp("damaged")
    with broker_beside(disk, topics={"damaged": 1}) as broker:
        damaged = JobContext(bootstrap=broker.bootstrap, topic="damaged")
        send(damaged, {"id": 1}, {"id": 2})
        segment = max(disk.glob("**/damaged-0/*.log"), key=lambda path: path.stat().st_size)
        content = bytearray(segment.read_bytes())
        content[content.rindex(b"2")] ^= 1
        segment.write_bytes(content)

        with pytest.raises(RetriableError, match="damaged-0 cannot be read at offset 0"):
            run(damaged, config(value_schema="id BIGINT"))

    assert files(home) == []
    assert damaged.told == {}


def test_what_takes_too_long_is_ended_and_the_session_goes_on(spark: Any) -> None:
    endless = spark.range(10**13).selectExpr("sum(hash(id))")

    with pytest.raises(BatchTooLarge, match="so it was cancelled"), limited(cancel_jobs, 0.5):
        endless.collect()

    assert spark.range(3).count() == 3


class HeldRows(PlainRows):
    """Rows that Spark writes only once it is let: it waits at two pipes."""

    def __init__(self, context: Any, parsed: Parsed, *, began: Path, gate: Path) -> None:
        super().__init__(context, parsed)
        self._pipes = str(began), str(gate)

    def shape(self, spans: Any, state: Any) -> Any:
        shaped = super().shape(spans, state)
        began, gate = self._pipes

        def hold(batches: Any) -> Any:
            from pathlib import Path  # noqa: PLC0415 - in a Python of Spark's

            Path(began).write_text("now")
            Path(gate).read_text()
            yield from batches

        shaped.frame = shaped.frame.mapInArrow(hold, shaped.frame.schema)
        return shaped


def test_what_spark_writes_when_its_worker_is_gone_is_not_in_the_table_twice(
    spark: Any, home: Path, context: JobContext, tmp_path: Path
) -> None:
    told = config(value_schema="id BIGINT")
    began, gate = tmp_path / "began", tmp_path / "gate"
    for pipe in (began, gate):
        os.mkfifo(pipe)
    send(context, {"id": 1}, {"id": 2})
    gone = replace(context, kept={})
    orphan = SparkSinkTask(lambda *given: HeldRows(*given, began=began, gate=gate))
    orphan.start(gone, parse_config(SparkSink.definition(), told))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(orphan.run)
        began.read_text()
        # Its worker loses the lease while Spark writes.
        gone.asked = 0

        run(replace(context, epoch=2), told)
        gate.write_text("go")
        with pytest.raises(RetriableError):
            writing.result()
    send(context, {"id": 3})
    run(replace(context, epoch=3), told)

    assert sorted(row["id"] for row in table(spark, home)) == [1, 2, 3]
