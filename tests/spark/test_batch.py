"""`spark.read.format("samsa")` against a running home, and Spark's own `kafka` beside it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from spark_integration.datasource.source import SamsaDataSource
from tests.extras import requires
from tests.spark.topics import create, fill
from tests.suite.services import shared_home

# What a door says where records were deleted that had to be read.
GONE = {
    "samsa": r"offsets 2 to 6 of .* are gone",
    "kafka": r"Some data may have been lost",
}
FIXED_SCHEMA = {
    "samsa": "that of samsa is fixed",
    "kafka": "schema doesn't match the actual schema",
}
NOT_THERE = "a-topic-that-is-not-there"
pytestmark = [requires("java", "spark"), pytest.mark.slow]


@pytest.fixture(scope="module")
def bootstrap(spark: Any) -> str:
    spark.dataSource.register(SamsaDataSource)
    return shared_home().bootstrap


class Topics:
    """The topics of a home, read through one door."""

    def __init__(self, spark: Any, door: str, bootstrap: str) -> None:
        self._spark = spark
        self._door = door
        self._bootstrap = bootstrap

    def read(self, **options: Any) -> Any:
        asked = self._spark.read.format(self._door).options(**options)
        return asked.option("kafka.bootstrap.servers", self._bootstrap).load()


@pytest.fixture
def topics(spark: Any, door: str, bootstrap: str) -> Topics:
    return Topics(spark, door, bootstrap)


def numbers(frame: Any) -> list[tuple[int, int]]:
    return sorted(
        (row.partition, row.offset) for row in frame.select("partition", "offset").collect()
    )


def test_all_of_a_topic_comes_with_its_columns(
    topics: Topics, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("all"), partitions=2)
    fill(bootstrap, topic, {0: 30, 1: 20}, **{"compression.type": "zstd"})

    frame = topics.read(subscribe=topic, includeHeaders=True)
    first = frame.where("partition = 0 AND offset = 0").collect()[0]

    assert numbers(frame) == [(0, at) for at in range(30)] + [(1, at) for at in range(20)]
    assert frame.columns[-1] == "headers"
    assert (bytes(first.key), bytes(first.value), first.topic) == (b"k", b"0", topic)
    assert first.timestampType == 0
    assert [(row.key, bytes(row.value)) for row in first.headers] == [("h", b"1")]
    (time,) = frame.selectExpr("date_format(min(timestamp), 'yyyy-MM-dd HH:mm:ss')").first()
    assert time == "2023-11-14 22:13:20"


def test_exact_ranges_and_times_are_read(
    topics: Topics, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("ranges"), partitions=2)
    fill(bootstrap, topic, {0: 10, 1: 10})
    start, end = ({topic: {"0": 3, "1": -2}}, {topic: {"0": 5, "1": -1}})

    exact = topics.read(
        assign=json.dumps({topic: [0, 1]}),
        startingOffsets=json.dumps(start),
        endingOffsets=json.dumps(end),
    )
    timed = topics.read(
        subscribePattern=f"^{topic}$",
        startingTimestamp=1_700_000_000_004,
        endingOffsetsByTimestamp=json.dumps({topic: {"0": 1_700_000_000_006, "1": 2**41}}),
    )

    assert numbers(exact) == [(0, 3), (0, 4)] + [(1, at) for at in range(10)]
    assert numbers(timed) == [(0, 4), (0, 5)] + [(1, at) for at in range(4, 10)]


def test_more_tasks_than_partitions_read_each_record_once(
    topics: Topics, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("split"))
    fill(bootstrap, topic, {0: 1000})

    frame = topics.read(subscribe=topic, minPartitions=4)

    assert frame.rdd.getNumPartitions() == 4
    assert numbers(frame) == [(0, at) for at in range(1000)]


def test_a_topic_with_nothing_in_it_is_no_rows(
    topics: Topics, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("empty"))

    assert topics.read(subscribe=topic).count() == 0


def test_what_is_deleted_fails_the_read_or_is_left_out(
    topics: Topics, door: str, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("deleted"))
    fill(bootstrap, topic, {0: 10})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    place = TopicPartition(topic, 0, 6)
    admin.delete_records([place])[place].result()
    asked = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}

    with pytest.raises(Exception, match=GONE[door]):
        topics.read(**asked).collect()

    assert numbers(topics.read(**asked, failOnDataLoss=False)) == [(0, at) for at in range(6, 10)]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("samsa", {}, "exactly one of subscribe"),
        pytest.param("kafka", {}, "One of the following options", marks=requires("maven-spark")),
        ("samsa", {"subscribe": NOT_THERE}, "which the cluster does not have"),
        pytest.param(
            "kafka",
            {"subscribe": NOT_THERE},
            "does not host this topic-partition",
            marks=requires("maven-spark"),
        ),
        # The other one reads on without what it does not know.
        ("samsa", {"subscribe": "a", "startingOffset": "latest"}, "did you mean startingOffsets"),
    ],
    ids=["nothing", "nothing-kafka", "missing", "missing-kafka", "misspelt"],
)
def test_a_wrong_option_is_named_to_the_user(
    spark: Any, bootstrap: str, name: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        Topics(spark, name, bootstrap).read(**options).collect()


def test_a_schema_of_ones_own_is_refused(spark: Any, door: str, bootstrap: str) -> None:
    asked = spark.read.format(door).schema("a string").option("subscribe", "t")

    with pytest.raises(Exception, match=FIXED_SCHEMA[door]):
        asked.option("kafka.bootstrap.servers", bootstrap).load().collect()
