"""The session of a process: batch, stream and state work in it, and nothing is left behind."""

from pathlib import Path
from typing import Any

import pytest

from spark_integration.jobs import class_archive
from tests.extras import requires

pytestmark = [requires("java", "spark"), pytest.mark.slow]


def test_batches_run_python_of_this_environment(spark: Any) -> None:
    def look(batches: Any) -> Any:
        import sys  # noqa: PLC0415 (in a worker)

        import pyarrow  # noqa: PLC0415

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"python": [sys.prefix]})

    (row,) = spark.range(1, numPartitions=1).mapInArrow(look, "python string").collect()

    import sys  # noqa: PLC0415

    assert row.python == sys.prefix


@requires("spark-classes")
def test_java_starts_with_the_stored_classes_of_spark(spark: Any) -> None:
    process = spark.sparkContext._gateway.proc.pid  # noqa: SLF001 (it has no other way)
    mapped = Path(f"/proc/{process}/maps").read_text(encoding="utf-8")

    assert str(class_archive.FOLDER) in mapped


def test_streams_keep_their_state_in_rocksdb(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text("a\nb\na\n", encoding="utf-8")
    counted = spark.readStream.text(str(tmp_path / "in")).groupBy("value").count()

    query = (
        counted.writeStream.format("memory")
        .queryName("counted")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)

    rows = {row["value"]: row["count"] for row in spark.table("counted").collect()}
    metrics = query.lastProgress["stateOperators"][0]["customMetrics"]
    assert rows == {"a": 2, "b": 1}
    assert any(name.startswith("rocksdb") for name in metrics)


def test_times_are_utc_and_partitions_few(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
