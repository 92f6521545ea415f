"""Records for tests as frames, and what comes out of them."""

import base64
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spark_integration.streams.records import Output, Record

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def frame_of(spark: Any, records: Sequence[Record]) -> Any:
    rows = [
        (
            record.key,
            record.value,
            "events",
            record.partition,
            record.offset,
            EPOCH + timedelta(milliseconds=record.timestamp_ms),
            0,
        )
        for record in records
    ]
    return spark.createDataFrame(rows, SCHEMA)


def stream_of(spark: Any, folder: Path) -> Any:
    """Return a stream of what `add_batch` adds, each in a batch of its own."""
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def add_batch(folder: Path, records: Sequence[Record]) -> None:
    """Write what Spark reads as these records, at once and after all others."""
    lines = [json.dumps(row_of(record)) + "\n" for record in records]
    at = len(list(folder.glob("*.json")))
    hidden, shown = folder / f".{at}", folder / f"{at}.json"
    hidden.write_text("".join(lines), encoding="utf-8")
    # Spark orders files by their times, in milliseconds.
    os.utime(hidden, (1_000_000_000 + at, 1_000_000_000 + at))
    hidden.rename(shown)


def row_of(record: Record) -> dict[str, Any]:
    time = EPOCH + timedelta(milliseconds=record.timestamp_ms)
    row = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": time.isoformat(timespec="milliseconds"),
    }
    for name, value in (("key", record.key), ("value", record.value)):
        if value is not None:
            row[name] = base64.b64encode(value).decode()
    return row


def outputs_of(frame: Any) -> list[Output]:
    def plain(value: Any) -> bytes | None:
        return None if value is None else bytes(value)

    return [Output(key=plain(row.key), value=plain(row.value)) for row in frame.collect()]
