"""`spark.read.format("samsa")`: the driver fixes ranges, and tasks read them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_integration.datasource.fetching import Range, Reading, read_range
from spark_integration.datasource.offsets import (
    find_topics,
    grouped,
    places_of,
    ranges,
    require_all,
    require_ids,
    resolve,
    split,
)
from spark_integration.datasource.options import SourceOptions
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.settings import Settings

# Shared by the process: Spark's Python workers run one task at a time, and a connection costs more
# than reading a small range.
CLUSTERS: Final[dict[Settings, Cluster]] = {}
# A task costs some 10 ms whatever it reads; this many cost no more than a micro-batch itself.
MOST_ALONE: Final = 200


@dataclass
class SamsaPartition(InputPartition):
    """One task: a range, or several small ones."""

    wanted: tuple[Range, ...]


class SamsaBatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with Cluster(options.settings) as cluster:
            topics = find_topics(cluster, options.selection)
            require_ids(options.topic_ids, topics)
            places = places_of(options.selection, topics)
            require_all(options.selection, places)
            start = resolve(cluster, options.starting, places, options)
            end = resolve(cluster, options.ending, places, options)
        return tasks(ranges(start, end, topics), options)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_task(partition, self._options)


def tasks(wanted: Sequence[Range], options: SourceOptions) -> list[InputPartition]:
    parts = split(
        wanted,
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )
    if len(parts) <= MOST_ALONE or options.min_partitions is not None:
        return [SamsaPartition((part,)) for part in parts]
    return [SamsaPartition(group) for group in grouped(parts)]


def read_task(partition: InputPartition, options: SourceOptions) -> Iterator[pyarrow.RecordBatch]:
    """Yield the ranges of a task; none if Spark made a task without partitions."""
    if not isinstance(partition, SamsaPartition):
        return iter(())
    cluster = CLUSTERS.get(options.settings)
    if cluster is None:
        cluster = CLUSTERS[options.settings] = Cluster(options.settings)
    reading = Reading(
        is_committed=options.is_committed,
        has_headers=options.has_headers,
        has_to_be_whole=options.fails_on_loss,
        patience_seconds=options.patience_seconds,
    )
    return chain.from_iterable(read_range(cluster, wanted, reading) for wanted in partition.wanted)
