"""`spark.readStream.format("samsa")`: where a stream begins, how far a batch goes, what it reads.

One object lives beside the driver for as long as a stream runs; what it knows besides its options
it can find out again, since Spark may ask the same of another one after a restart. Tasks get a
copy that reads and nothing else.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from spark_integration.datasource.admission import admitted, backlog, limited
from spark_integration.datasource.batch_reader import read_task, tasks
from spark_integration.datasource.errors import DataLost, OptionRefused
from spark_integration.datasource.fetching import Range, RangeFetch, Reading
from spark_integration.datasource.initial_offsets import (
    Beginning,
    read_beginning,
    stream_name,
    write_beginning,
)
from spark_integration.datasource.offsets import (
    Offsets,
    at_place,
    find_topics,
    from_json,
    places_of,
    require_all,
    resolve,
    to_json,
)
from spark_integration.datasource.options import Mark, SourceOptions
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.messages import LATEST, TopicFacts, TopicPartition

LOG: Final = logging.getLogger("samsa.spark")
# How many partitions are looked into for the size of records, those that wait for most.
SAMPLED: Final = 8
SAMPLE_BYTES: Final = 2**16
Shown = dict[str, dict[str, int]]


class SamsaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(
        self, options: SourceOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        require_name(options)
        self._options = options
        self._clock = clock
        self._held: Cluster | None = None
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        # Of topics that this stream reads, as they were when it first saw them.
        self._topic_ids: dict[str, bytes] | None = None
        self._admitted_at = clock()

    def __getstate__(self) -> SourceOptions:
        # What a task needs: connections stay here.
        return self._options

    def __setstate__(self, options: SourceOptions) -> None:
        self.__init__(options)  # type: ignore[misc]

    def initialOffset(self) -> Shown:  # noqa: N802 (here and below: Spark's names)
        name = self._name()
        beginning = read_beginning(self._cluster, name) if name else None
        if beginning is None:
            beginning = self._begin()
            if name:
                write_beginning(self._cluster, name, beginning)
        self._topic_ids = {**beginning.topic_ids}
        return to_json(beginning.offsets)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Shown, limit: ReadLimit) -> Shown:  # noqa: N802
        begin = from_json(start)
        end, topics = self._ends(begin)
        self._latest = end
        # A partition that was made anew is read from its beginning, where that is allowed.
        begin = {
            where: 0 if first > end.get(where, first) else first for where, first in begin.items()
        }
        if self._target is not None:
            end = limited(end, self._target)
        # What a restart has read may lie behind the target of this run.
        end = {where: max(last, begin.get(where, 0)) for where, last in end.items()}
        waiting = sum(backlog(begin, end).values())
        if waiting == 0 or self._has_to_wait(waiting, limit):
            return to_json(
                {where: first for where, first in from_json(start).items() if where in end}
            )
        self._admitted_at = self._clock()
        for most in self._limits(limit, begin, end, topics):
            end = admitted(begin, end, most)
        return to_json(end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends({})[0]

    def reportLatestOffset(self) -> Shown | None:  # noqa: N802
        return to_json(self._latest) if self._latest else None

    def partitions(self, start: Shown, end: Shown) -> Sequence[InputPartition]:
        begin, last = from_json(start), from_json(end)
        topics = self._topics()
        return tasks(self._ranges(begin, last, topics), self._options)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_task(partition, self._options)

    def commit(self, end: Shown) -> None:
        """Do nothing: Spark's own log says what was read, and says it in time."""

    def stop(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    @property
    def _cluster(self) -> Cluster:
        if self._held is None:
            self._held = Cluster(self._options.settings)
        return self._held

    def _name(self) -> str:
        options = self._options
        return stream_name(query_id=options.query_id, checkpoint=options.checkpoint)

    def _begin(self) -> Beginning:
        topics = find_topics(self._cluster, self._options.selection)
        places = places_of(self._options.selection, topics)
        require_all(self._options.selection, places)
        return Beginning(
            offsets=resolve(self._cluster, self._options.starting, places, self._options),
            topic_ids=ids_of(topics),
        )

    def _known_ids(self) -> dict[str, bytes]:
        """Return the ids that topics had as the stream began, or as it was last started."""
        if self._topic_ids is None:
            name = self._name()
            beginning = read_beginning(self._cluster, name) if name else None
            self._topic_ids = {} if beginning is None else {**beginning.topic_ids}
        return self._topic_ids

    def _topics(self) -> dict[str, TopicFacts]:
        """Return the topics that are there, and notice those that were made anew."""
        topics = find_topics(self._cluster, self._options.selection)
        for name, topic in topics.items():
            if self._known_ids().setdefault(name, topic.topic_id) != topic.topic_id:
                self._lose(f"topic {name} was deleted and made anew since the stream began")
                self._known_ids()[name] = topic.topic_id
        return topics

    def _ends(self, begin: Mapping[TopicPartition, int]) -> tuple[Offsets, dict[str, TopicFacts]]:
        topics = self._topics()
        places = places_of(self._options.selection, topics)
        end = at_place(self._cluster, places, LATEST, self._options)
        if gone := sorted(set(begin) - set(end)):
            self._lose(f"{', '.join(map(str, gone))} had to be read, and is not there any more")
        for where, last in end.items():
            if begin.get(where, 0) > last:
                self._lose(f"{where} was read up to {begin[where]}, and ends at {last} now")
        return end, topics

    def _has_to_wait(self, waiting: int, limit: ReadLimit) -> bool:
        """Tell whether so few offsets wait that a batch of them may come later."""
        fewest = self._options.min_offsets_per_trigger
        if fewest is None or waiting >= fewest or self._target is not None:
            return False
        if isinstance(limit, ReadAllAvailable) and self._options.max_offsets_per_trigger:
            return False
        waited_ms = (self._clock() - self._admitted_at) * 1000
        return waited_ms < self._options.max_trigger_delay_ms

    def _limits(
        self, limit: ReadLimit, begin: Offsets, end: Offsets, topics: dict[str, TopicFacts]
    ) -> Iterator[int]:
        """Yield how many offsets a batch may have, as a trigger and the options say."""
        if isinstance(limit, ReadMaxRows):
            yield limit.max_rows
        most_bytes = self._options.max_bytes_per_trigger
        if most_bytes is not None and not isinstance(limit, ReadAllAvailable):
            size = self._bytes_per_offset(begin, end, topics)
            yield max(1, int(most_bytes / size))

    def _bytes_per_offset(
        self, begin: Offsets, end: Offsets, topics: dict[str, TopicFacts]
    ) -> float:
        """Estimate the size of records, packed as they are, by what comes next where most waits."""
        waiting = backlog(begin, end)
        size = offsets = 0
        for where in sorted(waiting, key=waiting.__getitem__, reverse=True)[:SAMPLED]:
            wanted = range_of(where, begin.get(where, 0), end[where], topics)
            how = Reading(fetch_bytes=SAMPLE_BYTES, has_to_be_whole=False)
            with closing(RangeFetch(self._cluster, wanted, how)) as fetch:
                batch = next(fetch.visible_batches(), None)
            if batch is not None:
                size += len(batch.body)
                offsets += batch.last_offset - batch.base_offset + 1
        return max(size, 1) / max(offsets, 1)

    def _ranges(self, begin: Offsets, end: Offsets, topics: dict[str, TopicFacts]) -> list[Range]:
        found = []
        for where in sorted(end):
            first, last = begin.get(where, 0), end[where]
            if where.topic not in topics:
                self._lose(f"topic {where.topic} was deleted before {first} to {last} was read")
                continue
            if first > last:
                self._lose(f"{where} has to be read from {first} to {last}, which is before it")
                first = 0
            if first < last:
                found.append(range_of(where, first, last, topics))
        return found

    def _lose(self, text: str) -> None:
        if self._options.fails_on_loss:
            raise DataLost(
                f"{text}: records may be missing. To go on without them set the option"
                " failOnDataLoss to false; to read all that is there, begin with a new checkpoint"
            )
        LOG.warning("records.lost %s", text)


def require_name(options: SourceOptions) -> None:
    """Refuse a beginning that would be another one after a restart, and has no place to be kept."""
    starting = options.starting
    is_fixed = starting.mark in {Mark.PLACE, Mark.OFFSETS} and (
        starting.value != LATEST and LATEST not in starting.values.values()
    )
    if is_fixed or options.query_id or options.checkpoint:
        return
    raise OptionRefused(
        f"{starting.option} of this stream means another place after each restart, so where it"
        " began has to be kept under its name: add to readStream"
        ' .option("checkpointLocation", "the one of writeStream") or .option("queryId", "a name of'
        ' your own"), or begin with .option("startingOffsets", "earliest")'
    )


def ids_of(topics: Mapping[str, TopicFacts]) -> dict[str, bytes]:
    return {name: topic.topic_id for name, topic in topics.items()}


def range_of(where: TopicPartition, first: int, last: int, topics: dict[str, Any]) -> Range:
    return Range(
        topic=where.topic,
        topic_id=topics[where.topic].topic_id,
        partition=where.partition,
        start=first,
        end=last,
    )
