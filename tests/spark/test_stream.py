"""`spark.readStream.format("samsa")` against a running home, and Spark's own `kafka` beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_integration.datasource.source import SamsaDataSource
from tests.cluster import ROOT
from tests.extras import requires
from tests.spark.racing_sources import NaiveSource, OvertakenSource
from tests.spark.topics import create, fill
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

SECONDS = 90
CHECKPOINT = ROOT / "tests" / "data" / "spark-checkpoint"


@pytest.fixture(scope="module")
def bootstrap(spark: Any) -> str:
    for source in (SamsaDataSource, NaiveSource, OvertakenSource):
        spark.dataSource.register(source)
    return shared_home().bootstrap


class Job:
    """A stream into a list, which fails the batches that it is asked to fail."""

    def __init__(self, spark: Any, checkpoint: Path, **options: Any) -> None:
        self._spark = spark
        self._checkpoint = str(checkpoint)
        self._options = options
        self.batches: list[list[int]] = []
        # What a test does within a batch, before it counts.
        self.within: Callable[[int], None] | None = None

    def run(self, name: str = "samsa") -> None:
        """Read what is there now, then end; an error of a batch is raised."""
        asked = self._spark.readStream.format(name).options(**self._options)
        written = asked.load().writeStream.foreachBatch(self._take)
        query = (
            written.option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(SECONDS)

    def follow(self, name: str) -> None:
        """Read until there is no more; an error of a batch is raised."""
        asked = self._spark.readStream.format(name).options(**self._options)
        query = (
            asked.load()
            .writeStream.foreachBatch(self._take)
            .option("checkpointLocation", self._checkpoint)
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def _take(self, frame: Any, batch: int) -> None:
        rows = sorted(row.offset for row in frame.select("offset").collect())
        if self.within is not None:
            self.within(batch)
        self.batches.append(rows)


def test_available_now_reads_in_batches_and_goes_on_where_it_ended(
    spark: Any, door: str, bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = create(bootstrap, unique("now"))
    fill(bootstrap, topic, {0: 25}, **{"compression.type": "lz4"})
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    job = Job(spark, tmp_path, **options, startingOffsets="earliest", maxOffsetsPerTrigger=10)

    job.run(door)
    fill(bootstrap, topic, {0: 5})
    job.run(door)

    assert job.batches == [
        list(range(10)),
        list(range(10, 20)),
        list(range(20, 25)),
        list(range(25, 30)),
    ]


@requires("maven-spark")
@pytest.mark.parametrize(("first", "second"), [("kafka", "samsa"), ("samsa", "kafka")])
def test_a_checkpoint_of_one_door_is_gone_on_from_through_the_other(
    spark: Any,
    bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    first: str,
    second: str,
) -> None:
    topic = create(bootstrap, unique("moved"), partitions=2)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    job = Job(spark, tmp_path, **options, startingOffsets="earliest")

    for count, name in enumerate([first, second], start=2):
        fill(bootstrap, topic, {0: count, 1: count})
        job.run(name)

    assert job.batches == [[0, 0, 1, 1], [2, 2, 3, 3, 4, 4]]


def fail_first_batch(
    spark: Any, bootstrap: str, topic: str, checkpoint: Path, source: str
) -> list[int]:
    """Begin at the end, fail the first batch, let more come, start again; return what came."""
    checkpoint.mkdir()
    fill(bootstrap, topic, {0: 100})
    job = Job(
        spark,
        checkpoint,
        **{"kafka.bootstrap.servers": bootstrap},
        subscribe=topic,
        startingOffsets="latest",
        queryId=topic,
        groupIdPrefix=str(checkpoint / "raced"),
    )

    def fail(_batch: int) -> None:
        raise RuntimeError("the sink is away")

    job.within = fail
    with pytest.raises(Exception, match="the sink is away"):
        job.follow(source)
    fill(bootstrap, topic, {0: 90})
    job.within = None
    job.follow(source)
    return sorted(offset for batch in job.batches for offset in batch)


def test_a_first_batch_that_fails_is_read_again_from_where_it_began(
    spark: Any, bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    naive, ours = create(bootstrap, unique("naive")), create(bootstrap, unique("ours"))

    lost = fail_first_batch(spark, bootstrap, naive, tmp_path / "naive", "naive")
    found = fail_first_batch(spark, bootstrap, ours, tmp_path / "ours", "overtaken")

    # What a source without a memory does, and without a word: the batch that failed is gone.
    assert lost == list(range(110, 200))
    assert found == list(range(100, 200))


def test_a_checkpoint_of_the_first_release_is_gone_on_from(
    spark: Any, bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Its job died in batch 1, which has four rows of the first partition and two of the other."""
    topic = create(bootstrap, unique("release"), partitions=2)
    fill(bootstrap, topic, {0: 12, 1: 5})
    for path in CHECKPOINT.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(CHECKPOINT)
            target.parent.mkdir(exist_ok=True)
            text = path.read_text(encoding="utf-8").replace('"TOPIC"', f'"{topic}"')
            target.write_text(text, encoding="utf-8")
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}

    job = Job(spark, tmp_path, **options, startingOffsets="earliest")
    job.run()

    assert job.batches == [[3, 4, 6, 7, 8, 9], [10, 11]]


def test_a_stream_that_needs_a_name_says_which_line_to_add(
    spark: Any, bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = create(bootstrap, unique("nameless"))
    job = Job(spark, tmp_path, subscribe=topic, **{"kafka.bootstrap.servers": bootstrap})

    with pytest.raises(Exception, match=r"add to readStream .option\(\"checkpointLocation\""):
        job.run()
