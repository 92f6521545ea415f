"""`spark.read.format("samsa")` against a running home."""

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

pytestmark = [requires("java", "spark"), pytest.mark.slow]


@pytest.fixture(scope="module")
def bootstrap(spark: Any) -> str:
    spark.dataSource.register(SamsaDataSource)
    return shared_home().bootstrap


def read(spark: Any, bootstrap: str, **options: Any) -> Any:
    asked = spark.read.format("samsa").option("kafka.bootstrap.servers", bootstrap)
    return asked.options(**options).load()


def numbers(frame: Any) -> list[tuple[int, int]]:
    return sorted(
        (row.partition, row.offset) for row in frame.select("partition", "offset").collect()
    )


def test_all_of_a_topic_comes_with_its_columns(
    spark: Any, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("all"), partitions=2)
    fill(bootstrap, topic, {0: 30, 1: 20}, **{"compression.type": "zstd"})

    frame = read(spark, bootstrap, subscribe=topic, includeHeaders=True)
    first = frame.where("partition = 0 AND offset = 0").collect()[0]

    assert numbers(frame) == [(0, at) for at in range(30)] + [(1, at) for at in range(20)]
    assert frame.columns[-1] == "headers"
    assert (bytes(first.key), bytes(first.value), first.topic) == (b"k", b"0", topic)
    assert first.timestampType == 0
    assert [(row.key, bytes(row.value)) for row in first.headers] == [("h", b"1")]
    (time,) = frame.selectExpr("date_format(min(timestamp), 'yyyy-MM-dd HH:mm:ss')").first()
    assert time == "2023-11-14 22:13:20"


def test_exact_ranges_and_times_are_read(
    spark: Any, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("ranges"), partitions=2)
    fill(bootstrap, topic, {0: 10, 1: 10})
    start, end = ({topic: {"0": 3, "1": -2}}, {topic: {"0": 5, "1": -1}})

    exact = read(
        spark,
        bootstrap,
        assign=json.dumps({topic: [0, 1]}),
        startingOffsets=json.dumps(start),
        endingOffsets=json.dumps(end),
    )
    timed = read(
        spark,
        bootstrap,
        subscribePattern=f"^{topic}$",
        startingTimestamp=1_700_000_000_004,
        endingOffsetsByTimestamp=json.dumps({topic: {"0": 1_700_000_000_006, "1": 2**41}}),
    )

    assert numbers(exact) == [(0, 3), (0, 4)] + [(1, at) for at in range(10)]
    assert numbers(timed) == [(0, 4), (0, 5)] + [(1, at) for at in range(4, 10)]


def test_more_tasks_than_partitions_read_each_record_once(
    spark: Any, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("split"))
    fill(bootstrap, topic, {0: 1000})

    frame = read(spark, bootstrap, subscribe=topic, minPartitions=4)

    assert frame.rdd.getNumPartitions() == 4
    assert numbers(frame) == [(0, at) for at in range(1000)]


def test_a_topic_with_nothing_in_it_is_no_rows(
    spark: Any, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("empty"))

    assert read(spark, bootstrap, subscribe=topic).count() == 0


def test_what_is_deleted_fails_the_read_or_is_left_out(
    spark: Any, bootstrap: str, unique: Callable[[str], str]
) -> None:
    topic = create(bootstrap, unique("deleted"))
    fill(bootstrap, topic, {0: 10})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    place = TopicPartition(topic, 0, 6)
    admin.delete_records([place])[place].result()
    asked = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}

    with pytest.raises(Exception, match=r"offsets 2 to 6 of .* are gone"):
        read(spark, bootstrap, **asked).collect()

    assert numbers(read(spark, bootstrap, **asked, failOnDataLoss=False)) == [
        (0, at) for at in range(6, 10)
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "exactly one of subscribe"),
        ({"subscribe": "a-topic-that-is-not-there"}, "which the cluster does not have"),
        ({"subscribe": "a", "startingOffset": "latest"}, "did you mean startingOffsets"),
    ],
    ids=["nothing", "missing", "misspelt"],
)
def test_a_wrong_option_is_named_to_the_user(
    spark: Any, bootstrap: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        read(spark, bootstrap, **options).collect()


def test_a_schema_of_ones_own_is_refused(spark: Any, bootstrap: str) -> None:
    asked = spark.read.format("samsa").schema("a string").option("subscribe", "t")

    with pytest.raises(Exception, match="that of samsa is fixed"):
        asked.option("kafka.bootstrap.servers", bootstrap).load().collect()
