"""Sources that are overtaken by records as they begin: ours, and one that keeps no beginning.

Ten records come behind the first answer about where the stream begins, so that the first batch has
them, whatever the machine does meanwhile. The other one is as such a source is written at first.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from spark_integration.datasource.batch_reader import read_task, tasks
from spark_integration.datasource.columns import spark_schema
from spark_integration.datasource.offsets import (
    at_place,
    find_topics,
    from_json,
    places_of,
    ranges,
    to_json,
)
from spark_integration.datasource.options import parse_options
from spark_integration.datasource.source import SamsaDataSource
from spark_integration.datasource.stream_reader import SamsaStreamReader
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.messages import LATEST
from tests.spark.topics import fill

RACED: Final = 10


def overtake(options: Any) -> None:
    """Write records once; the option, which no source reads, names a file that says it is done."""
    done = Path(options["groupidprefix"])
    if not done.exists():
        done.touch()
        fill(options["kafka.bootstrap.servers"], options["subscribe"], {0: RACED})


class OvertakenSource(SamsaDataSource):
    @classmethod
    def name(cls) -> str:
        return "overtaken"

    def streamReader(self, schema: Any) -> "OvertakenReader":  # noqa: N802
        reader = OvertakenReader(parse_options(self.options, is_stream=True))
        reader.raw = dict(self.options)
        return reader


class OvertakenReader(SamsaStreamReader):
    raw: dict[str, str]

    def initialOffset(self) -> Any:  # noqa: N802
        beginning = super().initialOffset()
        overtake(self.raw)
        return beginning


class NaiveSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "naive"

    def schema(self) -> str:
        return spark_schema(has_headers=False)

    def streamReader(self, schema: Any) -> "NaiveReader":  # noqa: N802
        return NaiveReader(dict(self.options))


class NaiveReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._raw = options
        self._options = parse_options(options, is_stream=True)

    def initialOffset(self) -> Any:  # noqa: N802
        beginning = self._ends()
        overtake(self._raw)
        return beginning

    def latestOffset(self, start: Any, limit: Any) -> Any:  # noqa: N802
        return self._ends()

    def _ends(self) -> Any:
        options = self._options
        with Cluster(options.settings) as cluster:
            places = places_of(options.selection, find_topics(cluster, options.selection))
            return to_json(at_place(cluster, places, LATEST, options))

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        begin, last = from_json(start), from_json(end)
        there = {where: first for where, first in begin.items() if first < last[where]}
        with Cluster(self._options.settings) as cluster:
            topics = find_topics(cluster, self._options.selection)
        return tasks(ranges(there, {where: last[where] for where in there}, topics), self._options)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_task(partition, self._options)
