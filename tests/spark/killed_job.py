"""A program that copies a topic by a stream and kills itself at a chosen place.

Each micro-batch becomes one file named by its number, written beside and then renamed, which a
batch that runs again replaces: the files together are what was read. Given `2 before` or `2 after`,
it kills Spark and itself in batch 2, before or after that file is there.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_integration.datasource.source import SamsaDataSource
from spark_integration.jobs.session import HELD, session

ROWS_OF_A_BATCH = 10


def copy(
    spark: Any, bootstrap: str, topic: str, folder: Path, reach: Callable[[int, str], None]
) -> None:
    """Copy what is there now; `reach` is called before and after each batch has its file."""
    spark.dataSource.register(SamsaDataSource)

    def write(frame: Any, batch: int) -> None:
        rows = [
            [row.partition, row.offset] for row in frame.select("partition", "offset").collect()
        ]
        reach(batch, "before")
        beside = folder / "out" / f"{batch}.beside"
        beside.write_text(json.dumps(sorted(rows)), encoding="utf-8")
        beside.rename(folder / "out" / f"{batch}.json")
        reach(batch, "after")

    stream = (
        spark.readStream.format("samsa")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        # What moves with each restart, if nobody keeps it.
        .option("startingTimestamp", 0)
        .option("startingOffsetsByTimestampStrategy", "latest")
        .option("maxOffsetsPerTrigger", ROWS_OF_A_BATCH)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .load()
    )
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main(bootstrap: str, topic: str, folder: Path, fatal_batch: int, fatal_moment: str) -> None:
    spark = session(
        folder / "home",
        environment={"SAMSA_SPARK": "local[1]"},
        settings={"spark.driver.memory": "512m"},
    )

    def die(batch: int, moment: str) -> None:
        if (batch, moment) == (fatal_batch, fatal_moment):
            engine: Any = HELD.engine
            for pid in (engine._jvm.pid, os.getpid()):  # noqa: SLF001
                os.kill(pid, signal.SIGKILL)

    copy(spark, bootstrap, topic, folder, die)


if __name__ == "__main__":
    _, to, what, where, number, when = sys.argv
    main(to, what, Path(where), int(number), when)
