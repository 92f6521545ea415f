"""Rows of Arrow go where they, their keys or the options say."""

from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.values import Record, Span
from spark_integration.datasource.partitioner import hashes
from spark_integration.datasource.producer import WriteFailed
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import BrokerError
from spark_integration.datasource.wire.settings import parse_settings
from spark_integration.datasource.write_options import plan_write
from spark_integration.datasource.writer import asked_count, write_batches
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

TOPICS = ["keyed", "spread", "named", "left", "right", "texts", "compacted"]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"),
        topics=dict.fromkeys(TOPICS, 4),
        defaults={"auto.create.topics.enable": "false"},
    ) as broker:
        yield broker.bootstrap


HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
TYPES = {
    "key": pyarrow.binary(),
    "value": pyarrow.binary(),
    "topic": pyarrow.string(),
    "partition": pyarrow.int32(),
    "headers": HEADERS,
}
SPARK_TYPES = {
    "topic": "string",
    "partition": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


def write(bootstrap: str, columns: dict[str, list[Any]], **options: str) -> int:
    plan = plan_write(
        {"kafka.bootstrap.servers": bootstrap, **options},
        {name: SPARK_TYPES.get(name, "binary") for name in columns},
        overwrite=False,
    )
    arrays = [pyarrow.array(rows, TYPES[name]) for name, rows in columns.items()]
    batch = pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))
    return write_batches(plan, iter([batch, batch.slice(0, 0)])).rows


def read(bootstrap: str, topic: str) -> dict[int, list[Record]]:
    found = {}
    for partition in range(4):
        spans = [Span(partition=partition, start=0)]
        with Reader(Connection(bootstrap=bootstrap), topic, spans, stops_at_end=True) as reader:
            found[partition] = [record for batch in reader.batches() for record in batch]
    return found


def test_keys_choose_the_partition_and_keep_their_order(bootstrap: str) -> None:
    keys = [b"k%d" % (number % 7) for number in range(500)]
    values = [b"%d" % number for number in range(500)]

    assert write(bootstrap, {"key": keys, "value": values}, topic="keyed") == 500

    found = read(bootstrap, "keyed")
    for partition, records in found.items():
        assert [record.value for record in records] == [
            value
            for key, value in zip(keys, values, strict=True)
            if hashes([key]).tolist()[0] % 4 == partition
        ]
    assert sum(map(len, found.values())) == 500


def test_rows_without_keys_are_spread_by_whole_batches(bootstrap: str) -> None:
    values = [b"v" * 984] * 40  # 1000 bytes as they are counted

    write(bootstrap, {"value": values}, topic="spread", **{"kafka.batch.size": "10000"})

    assert [len(records) for records in read(bootstrap, "spread").values()] == [10, 10, 10, 10]


def test_a_row_may_name_its_partition_and_leave_the_others_to_their_keys(bootstrap: str) -> None:
    key = b"somewhere"
    own = hashes([key]).tolist()[0] % 4
    other = (own + 1) % 4

    write(
        bootstrap,
        {"key": [key, key], "value": [b"named", b"keyed"], "partition": [other, None]},
        topic="named",
    )

    found = read(bootstrap, "named")
    assert [record.value for record in found[other]] == [b"named"]
    assert [record.value for record in found[own]] == [b"keyed"]


def test_rows_name_their_topics_and_carry_headers_and_nulls(bootstrap: str) -> None:
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]

    write(
        bootstrap,
        {
            "topic": ["left", "right", "left"],
            "partition": [0, 0, 0],
            "value": [b"1", None, b"3"],
            "headers": [headers, None, []],
        },
    )

    first, third = read(bootstrap, "left")[0]
    (second,) = read(bootstrap, "right")[0]
    assert (first.value, first.headers) == (b"1", (("h", b"1"), ("h", None)))
    assert (second.value, second.headers) == (None, ())
    assert (third.value, third.headers) == (b"3", ())


@pytest.mark.parametrize("type_", [pyarrow.string(), pyarrow.large_string()])
def test_texts_are_written_as_utf_8(bootstrap: str, type_: Any) -> None:
    plan = plan_write(
        {"kafka.bootstrap.servers": bootstrap, "topic": "texts"},
        {"key": "string", "value": "string"},
        overwrite=False,
    )
    text = pyarrow.array(["größe", None], type_)
    batch = pyarrow.RecordBatch.from_arrays([text, text], names=["key", "value"])

    write_batches(plan, iter([batch]))

    rows = {(r.key, r.value) for records in read(bootstrap, "texts").values() for r in records}
    assert rows == {("größe".encode(), "größe".encode()), (None, None)}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"partition": [4]}, "partition says 4, and topic named has partitions 0 to 3.* -p 5"),
        ({"partition": [-1]}, "partition says -1"),
        ({"headers": [[{"key": None, "value": b""}]]}, "a header has no key"),
    ],
)
def test_row_that_cannot_be_placed_is_reported(
    bootstrap: str, columns: dict[str, list[Any]], told: str
) -> None:
    with pytest.raises(WriteFailed, match=told):
        write(bootstrap, {"value": [b"v"], **columns}, topic="named")


def test_row_without_a_topic_is_reported_with_its_number(bootstrap: str) -> None:
    with pytest.raises(WriteFailed, match="row 1 of a batch has no topic"):
        write(bootstrap, {"topic": ["left", None], "value": [b"1", b"2"]})


def test_missing_topic_is_reported_with_how_to_create_it(bootstrap: str) -> None:
    settings = parse_settings({"bootstrap.servers": bootstrap})

    # New topics are waited for, and this one will not come.
    with (
        Cluster(settings, new_topic_seconds=0) as cluster,
        pytest.raises(BrokerError, match=r"'nobody'.*samsa topics create nobody"),
    ):
        cluster.retried(lambda: asked_count(cluster, "nobody"), "Metadata")
