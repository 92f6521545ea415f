"""The sink of `format("samsa")`: converts the rows of a task to records, by whole Arrow batches.

One producer per task. A repeated task writes its rows again: at least once, like Spark's own Kafka
sink. So there is nothing to commit or abort when a job ends.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy
import pyarrow
from pyarrow import compute
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from spark_integration.datasource.encode import NO_HEADERS, encoded_headers
from spark_integration.datasource.partitioner import Rotation, hashes
from spark_integration.datasource.producer import IdempotentProducer, WriteFailed
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import check
from spark_integration.datasource.wire.messages import TopicPartition
from spark_integration.datasource.write_options import WritePlan, plan_write

# The approximate overhead of a record without a key.
RECORD_BYTES: Final = 16
NOWHERE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(WriterCommitMessage):
    """The result of a task."""

    rows: int


class SamsaWriter(DataSourceArrowWriter):
    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Written:
        return write_batches(self._plan, iterator)


class SamsaStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Written:
        return write_batches(self._plan, iterator)


def plan_of(options: CaseInsensitiveDict, schema: StructType, *, overwrite: bool) -> WritePlan:
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    return plan_write(dict(options), columns, overwrite=overwrite)


def write_batches(plan: WritePlan, batches: Iterator[pyarrow.RecordBatch]) -> Written:
    """Write the rows of one task; return when the brokers have acknowledged all."""
    with Cluster(plan.settings) as cluster:
        producer = IdempotentProducer(
            cluster,
            codec=plan.codec,
            batch_bytes=plan.batch_bytes,
            buffer_bytes=plan.buffer_bytes,
            delivery_seconds=plan.delivery_ms / 1000,
        )
        router = Router(plan, cluster)
        for batch in batches:
            write_batch(plan, router, producer, batch)
        producer.flush()
        return Written(rows=producer.written)


def write_batch(
    plan: WritePlan, router: "Router", producer: IdempotentProducer, batch: pyarrow.RecordBatch
) -> None:
    columns = {name: batch.column(name) for name in plan.columns}
    values = binary(columns["value"])
    keys = binary(columns["key"]) if "key" in columns else [None] * batch.num_rows
    headers = [NO_HEADERS] * batch.num_rows
    if "headers" in columns:
        headers = [encoded_headers(pairs(row)) for row in columns["headers"].to_pylist()]
    wanted = columns["partition"].to_pylist() if "partition" in columns else None
    for topic, rows in router.topics(columns.get("topic"), batch.num_rows):
        sizes = numpy.array([len(values[row] or b"") + RECORD_BYTES for row in rows.tolist()])
        partitions = router.partitions(
            topic,
            [keys[row] for row in rows.tolist()],
            sizes,
            None if wanted is None else [wanted[row] for row in rows.tolist()],
        )
        for partition in numpy.unique(partitions).tolist():
            chosen = rows[partitions == partition].tolist()
            producer.append(
                TopicPartition(topic, partition),
                ((keys[row], values[row], headers[row]) for row in chosen),
            )


class Router:
    """The destination of each row: the topic and partition that it names, or by its key."""

    def __init__(self, plan: WritePlan, cluster: Cluster) -> None:
        self._plan = plan
        self._cluster = cluster
        self._counts: dict[str, int] = {}
        self._rotations: dict[str, Rotation] = {}

    def topics(
        self, column: pyarrow.Array | None, count: int
    ) -> Iterator[tuple[str, numpy.ndarray]]:
        """Yield each topic with its rows."""
        if self._plan.topic is not None:
            yield self._plan.topic, numpy.arange(count)
            return
        assert column is not None, "the plan has a topic or a column of them"
        if column.null_count:
            row = compute.is_null(column).index(value=True).as_py()
            raise WriteFailed(
                f"row {row} of a batch has no topic: fill the column topic, or give"
                ' .option("topic", NAME) for all rows'
            )
        encoded = compute.dictionary_encode(column)
        places = encoded.indices.to_numpy()
        for place, topic in enumerate(encoded.dictionary.to_pylist()):
            yield topic, numpy.nonzero(places == place)[0]

    def partitions(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        sizes: numpy.ndarray,
        wanted: Sequence[int | None] | None,
    ) -> numpy.ndarray:
        """Return the partition of each row of a topic."""
        count = self._partition_count(topic)
        chosen = numpy.full(len(keys), NOWHERE, dtype=numpy.int64)
        if wanted is not None:
            chosen = self._named(topic, count, wanted)
        keyed = [row for row, key in enumerate(keys) if key is not None and chosen[row] == NOWHERE]
        if keyed:
            chosen[keyed] = hashes([keys[row] or b"" for row in keyed]) % count
        rest = numpy.nonzero(chosen == NOWHERE)[0]
        if len(rest):
            chosen[rest] = self._rotations[topic].places(sizes[rest])
        return chosen

    def _named(self, topic: str, count: int, wanted: Sequence[int | None]) -> numpy.ndarray:
        for partition in wanted:
            if partition is not None and not 0 <= partition < count:
                raise WriteFailed(
                    f"the column partition says {partition}, and topic {topic} has partitions 0"
                    f" to {count - 1}: change the rows, or add partitions:"
                    f" ./samsa topics alter {topic} -p {max(partition, 0) + 1}"
                )
        return numpy.array(
            [NOWHERE if partition is None else partition for partition in wanted],
            dtype=numpy.int64,
        )

    def _partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            count = self._cluster.retried(lambda: asked_count(self._cluster, topic), "Metadata")
            self._counts[topic] = count
            self._rotations[topic] = Rotation(
                # Tasks begin with different partitions.
                first=random.randrange(count),  # noqa: S311 (no secret)
                count=count,
                batch_bytes=self._plan.batch_bytes,
            )
        return self._counts[topic]


def asked_count(cluster: Cluster, topic: str) -> int:
    """Return how many partitions a topic has."""
    facts = cluster.metadata([topic]).topics[topic]
    check(
        facts.error_code,
        f"topic {topic!r} of the write",
        f"create it: ./samsa topics create {topic}" if facts.error_code == 3 else None,
    )
    return len(facts.leaders)


def binary(column: pyarrow.Array) -> list[bytes | None]:
    """Return a column of bytes or texts as bytes."""
    if pyarrow.types.is_string(column.type):
        column = column.cast(pyarrow.binary())
    elif pyarrow.types.is_large_string(column.type):
        column = column.cast(pyarrow.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def pairs(headers: Sequence[dict[str, object]] | None) -> list[tuple[str, bytes | None]]:
    """Encode the headers of a row."""
    found = []
    for header in headers or ():
        name, value = header["key"], header["value"]
        if not isinstance(name, str):
            raise WriteFailed("a header has no key, which Kafka's protocol requires: give it one")
        assert value is None or isinstance(value, bytes), "the plan has checked the type"
        found.append((name, value))
    return found
