"""What is rolled up from the collector's own records, without Spark."""

import json
import re
from array import array
from typing import Any

import pytest

from console.monitoring.metric_records import Moments, records_of
from console.monitoring.rings import Moment
from spark_integration.examples.metrics import lag, throughput
from spark_integration.streams.memory import MemoryDriver
from spark_integration.streams.records import Record
from spark_integration.streams.topology import Topology
from tests.tidy.project import ROOT

PAGE = (ROOT / "docs" / "howto" / "roll-up-metrics.md").read_text(encoding="utf-8")
SHOWN_BY_TOPIC, SHOWN_BY_GROUP = map(json.loads, re.findall(r"^\{[^`]*?\}$", PAGE, re.MULTILINE))

# A full hour.
BEGIN_MS = 1_767_261_600_000


def sample(second: int, *, records: float, waiting: int) -> list[Record]:
    """Return what the collector writes of one topic and one group."""
    kinds = {
        "topic": Moment((("orders",),), tuple(array("f", [v]) for v in (records, 9, 20, 10))),
        "group": Moment((("billing",),), tuple(array("f", [v]) for v in (waiting, waiting * 10))),
        "pair": Moment((("billing", "orders"),), tuple(array("f", [v]) for v in (waiting, 0))),
    }
    at_ms = BEGIN_MS + second * 1000
    moments = Moments(at_ms=at_ms, cluster_id="c", kinds=kinds, partitions={"orders": 3})
    return [Record(key=key, value=value) for key, value in records_of(moments)]


def rolled_up(topology: Topology) -> list[dict[str, Any]]:
    driver = MemoryDriver(topology)
    written = []
    for second in range(0, 360, 10):
        written += driver.pipe(*sample(second, records=second, waiting=second))
    written += driver.finish()
    assert (driver.counts.bad, driver.counts.late) == (0, 0)
    return [json.loads(record.value or b"") for record in written]


def test_throughput_is_counted_by_topic_and_minute() -> None:
    first, *rest = rolled_up(throughput("m", "out"))

    assert len(rest) == 5
    assert first == SHOWN_BY_TOPIC
    assert first["window_end"] - first["window_start"] == 60_000


def test_lag_is_computed_by_group_and_five_minutes() -> None:
    first, second = rolled_up(lag("m", "out"))

    assert first == SHOWN_BY_GROUP
    assert (first["mean_lag_records"], first["most_lag_records"]) == (145.0, 290)
    assert second["samples"] == 6


def test_example_of_the_page_works_without_spark(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(program, {})  # noqa: S102 (the page's own)

    assert '"records_per_s":25.0' in capsys.readouterr().out
