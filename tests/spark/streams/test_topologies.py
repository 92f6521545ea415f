"""A topology writes the same in memory, over a bounded range on Spark, and as a stream."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_integration.streams import aggregates
from spark_integration.streams.aggregates import (
    avg_of,
    collect_of,
    count_of,
    first_of,
    last_of,
    max_of,
    min_of,
    sum_of,
)
from spark_integration.streams.building import stream
from spark_integration.streams.expressions import as_text, field, is_null, truncate
from spark_integration.streams.formats import bytes_format, json_format, text_format
from spark_integration.streams.memory import MemoryDriver
from spark_integration.streams.records import Output, Record
from spark_integration.streams.topology import Topology
from spark_integration.streams.windows import hopping, session, tumbling
from tests.extras import requires
from tests.scale import count
from tests.spark.streams.frames import add_batch, frame_of, outputs_of, stream_of
from tests.spark.streams.odd_json import FIELDS, odd_values
from tests.spark_integration.streams.test_records import BAD

pytestmark = [requires("java", "spark"), pytest.mark.slow]

EVENTS = stream(
    "events", json_format({"who": "text", "n": "long", "d": "double", "at": "time"}), grace="5s"
)
TIMED = stream("events", json_format({"who": "text", "n": "long", "at": "time"}), time="at")
ALL = {
    "rows": aggregates.count(),
    "there": count_of("n"),
    "total": sum_of("n"),
    "least": min_of("n"),
    "most": max_of("n"),
    "mean": avg_of("n"),
    "first": first_of("n"),
    "last": last_of("n"),
    "latest": collect_of("n", at_most=2),
}
COUNTED = {"rows": aggregates.count(), "total": sum_of("n"), "last": last_of("n")}
COUNTED["latest"] = collect_of("n", at_most=2)
GROUPED = EVENTS.group("who")


def event(who: str | None, at_ms: int, n: int | None = 1, offset: int = 0) -> Record:
    at = f"1969-12-31T23:59:59.99{offset // 2:02}5Z"
    value = json.dumps({"who": who, "n": n, "d": 0.5, "at": at}).encode()
    key = None if who is None else who.encode()
    return Record(key=key, value=value, timestamp_ms=at_ms, offset=offset)


BATCHES: list[list[Record]] = [
    [event("ann", 1000, 2, 0), event("bob", 2000, 5, 1), event("ann", 9999, None, 2)],
    [event("ann", 12_000, 2**63 - 1, 3), event("ann", 12_000, 1, 4), event("b\x1f\"'ä", 0, 1, 5)],
    # Past the grace of the first windows and sessions.
    [event("bob", 31_000, 7, 6), event(None, 31_000, 7, 7)],
    # Late, within the grace, and touching a session.
    [event("ann", 3000, 1, 8), event("bob", 27_000, 1, 9), event("bob", 35_000, 1, 10)],
    [event("cid", 60_000, 1, 11)],
]
ORDERED = [record for batch in BATCHES for record in batch if record.offset != 8]
SHAPES = {
    "rows": EVENTS.where(field("n") > 1).select("who", half=field("n") / 2).to("out"),
    "all fields": EVENTS.to("out"),
    "nulls": EVENTS.where(is_null(field("n")))
    .select("n", key=as_text(field("record_key")))
    .to("o"),
    "groups": GROUPED.aggregate(**ALL).to("out"),
    "two fields": EVENTS.select(
        "n", minute=truncate(field("record_time"), "1m"), odd=field("n") % 2
    )
    .group("minute", "odd")
    .aggregate(**ALL)
    .to("out"),
    "tumbling": GROUPED.window(tumbling("10s")).aggregate(**COUNTED).to("out"),
    "tumbling, final": GROUPED.window(tumbling("10s")).aggregate(**ALL).final().to("out"),
    "hopping": GROUPED.window(hopping("10s", slide="3s")).aggregate(**COUNTED).to("out"),
    "hopping, final": GROUPED.window(hopping("10s", slide="5s"))
    .aggregate(**COUNTED)
    .final()
    .to("o"),
    "session, final": GROUPED.window(session("4s")).aggregate(**COUNTED).final().to("out"),
    "times": TIMED.group("at").aggregate(**COUNTED).to("out"),
    "time of a field": TIMED.group("who").window(tumbling("1d")).aggregate(**COUNTED).to("out"),
}
# What a stream tells batch by batch; the others differ in nothing that Spark does otherwise.
STREAMED = ["tumbling", "session, final"]


def comparable(outputs: Sequence[Output]) -> list[Any]:
    """Keys to the byte; values as JSON, since doubles are written in two ways."""
    return sorted(
        ((output.key, json.loads(output.value or b"null")) for output in outputs), key=repr
    )


def in_memory(topology: Topology, records: Sequence[Record]) -> list[Output]:
    driver = MemoryDriver(topology)
    return [*driver.pipe(*records), *driver.finish()]


def in_batch(spark: Any, topology: Topology, records: Sequence[Record]) -> list[Output]:
    from spark_integration.streams.to_spark import result_frame  # noqa: PLC0415 (an extra)

    return outputs_of(result_frame(topology, frame_of(spark, records), observation="records"))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bounded_range_is_answered_as_in_memory(spark: Any, shape: str) -> None:
    written = in_batch(spark, SHAPES[shape], ORDERED)

    assert comparable(written) == comparable(in_memory(SHAPES[shape], ORDERED))


def test_streams_are_answered_as_in_memory_batch_by_batch(spark: Any, tmp_path: Path) -> None:
    drivers = {shape: MemoryDriver(SHAPES[shape]) for shape in STREAMED}
    # All at once, since a batch mostly waits.
    queries = {shape: told_batches(spark, tmp_path, shape) for shape in STREAMED}
    try:
        for batch in BATCHES:
            for _, told in queries.values():
                told.clear()
            add_batch(tmp_path / "in", batch)
            for shape, (query, told) in queries.items():
                # Until it rests: a batch without data closes what this one let close.
                query.processAllAvailable()
                assert comparable(told) == comparable(drivers[shape].pipe(*batch)), shape
    finally:
        for query, _ in queries.values():
            query.stop()
    assert all(drivers[shape].counts.late > 0 for shape in STREAMED)


def told_batches(spark: Any, folder: Path, shape: str) -> tuple[Any, list[Output]]:
    from spark_integration.streams.to_spark import output_mode, result_frame  # noqa: PLC0415

    told: list[Output] = []
    records = stream_of(spark, folder / "in")
    written = result_frame(SHAPES[shape], records, observation="records").writeStream
    written = written.outputMode(output_mode(SHAPES[shape]))
    written = written.foreachBatch(lambda frame, _: told.extend(outputs_of(frame)))
    checkpoint = str(folder / f"checkpoint {STREAMED.index(shape)}")
    return written.option("checkpointLocation", checkpoint).start(), told


def test_odd_values_are_read_or_bad_alike(spark: Any) -> None:
    from spark_integration.streams.to_spark import bad_frame  # noqa: PLC0415 (an extra)

    topology = stream("a", json_format(FIELDS), bad_records="bad").to("b")
    values = [*BAD, b"{}", None, *odd_values(count(500, 2000, long=50_000), seed=5)]
    records = [Record(key=b"%d" % at, value=value) for at, value in enumerate(values)]
    driver = MemoryDriver(topology)

    expected = driver.pipe(*records)

    assert comparable(in_batch(spark, topology, records)) == comparable(expected)
    bad = outputs_of(bad_frame(topology, frame_of(spark, records)))
    assert sorted(bad, key=repr) == sorted(
        (Output(key=record.key, value=record.value) for record in driver.bad_records), key=repr
    )
    assert len(expected) > 50 < len(bad)


@pytest.mark.parametrize("form", [text_format(), bytes_format()], ids=["text", "bytes"])
def test_texts_and_bytes_pass_as_they_are(spark: Any, form: Any) -> None:
    topology = stream("a", form).to("b")
    values = [b"", b"a", "ä😀".encode(), b"\xff", b"\xed\xa0\x80", None]
    records = [Record(value=value, offset=at) for at, value in enumerate(values)]

    written = in_batch(spark, topology, records)

    assert sorted(written, key=repr) == sorted(in_memory(topology, records), key=repr)
