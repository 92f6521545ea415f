"""`spark.readStream.format("samsa")`: plans the beginning of a stream and its micro-batches.

One object lives next to the driver while a stream runs. It can find out its state again, since
Spark may continue with another object after a restart. Tasks get a copy that only reads.
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
# How many partitions to sample for record sizes, those with the most pending records.
SAMPLED: Final = 8
SAMPLE_BYTES: Final = 2**16
# Of what a checkpoint holds, in a message.
MAX_SHOWN_CHARS: Final = 200
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
        # Ids of the topics of this stream when it first saw them.
        self._topic_ids: dict[str, bytes] | None = None
        self._admitted_at = clock()

    def __getstate__(self) -> SourceOptions:
        # Only what a task needs: connections are not pickled.
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
        begin = kept_offsets(start)
        end, topics = self._ends(begin)
        self._latest = end
        # A recreated partition is read from its beginning, if the options allow it.
        begin = {
            where: 0 if first > end.get(where, first) else first for where, first in begin.items()
        }
        if self._target is not None:
            end = limited(end, self._target)
        # After a restart, the position may be past the target of this run.
        end = {where: max(last, begin.get(where, 0)) for where, last in end.items()}
        waiting = sum(backlog(begin, end).values())
        if waiting == 0 or self._has_to_wait(waiting, limit):
            return to_json(
                {where: first for where, first in kept_offsets(start).items() if where in end}
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
        begin, last = kept_offsets(start), kept_offsets(end)
        topics = self._topics()
        return tasks(self._ranges(begin, last, topics), self._options)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_task(partition, self._options)

    def commit(self, end: Shown) -> None:
        """Do nothing: Spark's checkpoint holds the offsets."""

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
        """Return the topic ids at the stream's beginning, or at its last start."""
        if self._topic_ids is None:
            name = self._name()
            beginning = read_beginning(self._cluster, name) if name else None
            self._topic_ids = {} if beginning is None else {**beginning.topic_ids}
        return self._topic_ids

    def _topics(self) -> dict[str, TopicFacts]:
        """Return the existing topics, and detect recreated ones."""
        topics = find_topics(self._cluster, self._options.selection)
        for name, topic in topics.items():
            if self._known_ids().setdefault(name, topic.topic_id) != topic.topic_id:
                self._lose(f"topic {name} was deleted and recreated since the stream began")
                self._known_ids()[name] = topic.topic_id
        return topics

    def _ends(self, begin: Mapping[TopicPartition, int]) -> tuple[Offsets, dict[str, TopicFacts]]:
        topics = self._topics()
        places = places_of(self._options.selection, topics)
        end = at_place(self._cluster, places, LATEST, self._options)
        if gone := sorted(set(begin) - set(end)):
            self._lose(f"{', '.join(map(str, gone))} should be read, but no longer exists")
        for where, last in end.items():
            if begin.get(where, 0) > last:
                self._lose(f"{where} was read up to {begin[where]}, and now ends at {last}")
        return end, topics

    def _has_to_wait(self, waiting: int, limit: ReadLimit) -> bool:
        """Return whether the batch should wait for more offsets."""
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
        """Yield the limits of a batch in offsets, by trigger and options."""
        if isinstance(limit, ReadMaxRows):
            yield limit.max_rows
        most_bytes = self._options.max_bytes_per_trigger
        if most_bytes is not None and not isinstance(limit, ReadAllAvailable):
            size = self._bytes_per_offset(begin, end, topics)
            yield max(1, int(most_bytes / size))

    def _bytes_per_offset(
        self, begin: Offsets, end: Offsets, topics: dict[str, TopicFacts]
    ) -> float:
        """Estimate the compressed size of records from the partitions with the most pending."""
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
                self._lose(f"{where} has to be read from {first} to {last}, which is lower")
                first = 0
            if first < last:
                found.append(range_of(where, first, last, topics))
        return found

    def _lose(self, text: str) -> None:
        if self._options.fails_on_loss:
            raise DataLost(
                f"{text}: records may be missing. To continue without them, set the option"
                " failOnDataLoss to false; to read all existing records, use a new checkpoint"
            )
        LOG.warning("records.lost %s", text)


def require_name(options: SourceOptions) -> None:
    """Refuse a beginning that would differ after a restart, if the stream has no name."""
    starting = options.starting
    is_fixed = starting.mark in {Mark.PLACE, Mark.OFFSETS} and (
        starting.value != LATEST and LATEST not in starting.values.values()
    )
    if is_fixed or options.query_id or options.checkpoint:
        return
    raise OptionRefused(
        f"{starting.option} of this stream means another offset after each restart, so its first"
        " offsets have to be stored under its name: add to readStream"
        ' .option("checkpointLocation", "the one of writeStream") or .option("queryId", "a name of'
        ' your own"), or begin with .option("startingOffsets", "earliest")'
    )


def kept_offsets(shown: Mapping[str, Any]) -> Offsets:
    """Return the offsets of a checkpoint, and refuse one of another source."""
    try:
        return from_json(shown)
    except (AttributeError, TypeError, ValueError):
        raise OptionRefused(
            f"the checkpoint has {str(shown)[:MAX_SHOWN_CHARS]} where offsets of topics should be:"
            " another source has written it. Give the stream a checkpointLocation of its own"
        ) from None


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
