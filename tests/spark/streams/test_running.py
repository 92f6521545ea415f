"""A topology runs over a bounded range, and goes on as a stream from its checkpoint."""

from pathlib import Path
from typing import Any

import pytest

from spark_integration.streams.aggregates import count
from spark_integration.streams.building import stream
from spark_integration.streams.errors import StreamRefused
from spark_integration.streams.expressions import field
from spark_integration.streams.formats import text_format
from spark_integration.streams.records import Output, Record
from spark_integration.streams.topology import Topology
from tests.extras import requires
from tests.spark.streams.frames import add_batch, frame_of, outputs_of, stream_of

pytestmark = [requires("java", "spark"), pytest.mark.slow]

WORDS = stream("words", text_format(), bad_records="no-words")
TOPOLOGY = WORDS.group("value").aggregate(n=count()).to("counted")


def words(*values: bytes | None) -> list[Record]:
    return [Record(value=value, offset=at) for at, value in enumerate(values)]


class Written:
    """What was written to each topic, and an error to come."""

    def __init__(self) -> None:
        self.topics: dict[str, list[Output]] = {}
        self.error: Exception | None = None

    def __call__(self, frame: Any, topic: str) -> None:
        if self.error is not None and topic == "counted":
            raise self.error
        self.topics.setdefault(topic, []).extend(outputs_of(frame))

    def values(self, topic: str) -> list[bytes | None]:
        return sorted((output.value for output in self.topics.pop(topic, [])), key=repr)


def start(
    spark: Any, folder: Path, topology: Topology, written: Written, *, interval: str | None = None
) -> Any:
    from spark_integration.streams.running import run_stream  # noqa: PLC0415 (an extra)

    def read(_place: str) -> Any:
        return stream_of(spark, folder / "in")

    place = str(folder / "checkpoint")
    return run_stream(spark, topology, read, written, checkpoint=place, interval=interval)


def test_a_bounded_range_is_written_and_counted(spark: Any) -> None:
    from spark_integration.streams.running import ReadCounts, run_batch  # noqa: PLC0415 (an extra)

    written = Written()

    counts = run_batch(TOPOLOGY, frame_of(spark, words(b"a", b"\xff", b"a", None)), written)

    assert counts == ReadCounts(records=4, bad=1, empty=1)
    assert written.values("counted") == [b'{"value":"a","n":2}']
    assert written.values("no-words") == [b"\xff"]


def test_a_stream_goes_on_from_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    written = Written()
    add_batch_of(tmp_path, b"a", b"\xff", b"b")
    first = start(spark, tmp_path, TOPOLOGY, written)
    assert first.wait(120)
    assert written.values("counted") == [b'{"value":"a","n":1}', b'{"value":"b","n":1}']
    assert written.values("no-words") == [b"\xff"]
    assert (first.counts().records, first.counts().bad) == (3, 1)

    written.error = OSError("the cluster is away")
    add_batch_of(tmp_path, b"a")
    failed = start(spark, tmp_path, TOPOLOGY, written)
    with pytest.raises(Exception, match="the cluster is away"):
        failed.wait(120)
    assert [query.isActive for query in failed.queries] == [False, False]

    written.error = None
    again = start(spark, tmp_path, TOPOLOGY, written, interval="100ms")
    for query in again.queries:
        query.processAllAvailable()
    assert not again.wait(0)
    again.stop()
    assert written.values("counted") == [b'{"value":"a","n":2}']
    assert written.values("no-words") == []

    changed = WORDS.where(field("value") != "b").group("value").aggregate(n=count()).to("counted")
    with pytest.raises(StreamRefused) as caught:
        start(spark, tmp_path, changed, written)
    assert "is of another topology:\n  steps: was [], is [" in str(caught.value)
    assert "give the changed one a checkpoint of its own" in str(caught.value)


def test_a_checkpoint_of_something_else_is_refused(spark: Any, tmp_path: Path) -> None:
    from spark_integration.streams.checkpoints import keep_topology  # noqa: PLC0415 (an extra)

    offsets = tmp_path / "foreign" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n", encoding="utf-8")
    broken = tmp_path / "broken" / "topology"
    broken.mkdir(parents=True)
    (broken / "part").write_text("{", encoding="utf-8")

    for place, told in [
        ("foreign", "has progress, but not of a topology"),
        ("broken", "cannot be read as the topology"),
        ("a*", "has '*', a pattern to Spark"),
    ]:
        with pytest.raises(StreamRefused) as caught:
            keep_topology(spark, TOPOLOGY, str(tmp_path / place))
        assert told in str(caught.value)


def add_batch_of(folder: Path, *values: bytes) -> None:
    (folder / "in").mkdir(exist_ok=True)
    add_batch(folder / "in", words(*values))
