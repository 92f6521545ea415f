"""Runs a topology on Spark: once over a bounded range, or as a stream from a checkpoint.

The caller provides source and sink; `topics` does so for topics of a cluster. Results are written
at least once: an interrupted batch is written again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, TypeAlias

from pyspark.sql import Observation

from spark_integration.streams.checkpoints import BAD_RECORDS, QUERY, STEP, keep_topology
from spark_integration.streams.durations import parse_duration
from spark_integration.streams.spark_records import Frame
from spark_integration.streams.to_spark import bad_frame, output_mode, result_frame
from spark_integration.streams.topology import Topology

# Returns the records of the topic as a streaming DataFrame, for the query with this checkpoint.
Read: TypeAlias = Callable[[str], Frame]
# Appends records with key and value to the topic of this name.
Write: TypeAlias = Callable[[Frame, str], None]

# The name under which Spark reports how many records were read, bad and empty.
OBSERVATION: Final = "samsa_records"
# How soon the end of one query is noticed while another runs.
LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCounts:
    records: int
    bad: int
    # Without a value, which JSON and texts need.
    empty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A topology that runs as a stream: its query, and one for bad records if they have a topic."""

    queries: tuple[Any, ...]

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until everything present at the start has been read; return whether it has.

        With an interval that never happens, so only the timeout ends the wait. A query that fails
        stops the others, and its error is raised.
        """
        deadline = None if timeout_seconds is None else monotonic() + timeout_seconds
        try:
            while True:
                # Check each query, so that any failure is noticed.
                has_ended = [query.awaitTermination(LOOK_SECONDS) for query in self.queries]
                if all(has_ended):
                    return True
                if deadline is not None and monotonic() >= deadline:
                    return False
        except Exception:  # of any kind that a query can end with; re-raised to the caller
            self.stop()
            raise

    def stop(self) -> None:
        """Stop after the current write."""
        for query in self.queries:
            query.stop()

    def counts(self) -> ReadCounts:
        """Return the counts of the batches that Spark remembers, by default the last hundred."""
        metrics = [progress["observedMetrics"] for progress in self.queries[0].recentProgress]
        found = [counts_of(told[OBSERVATION]) for told in metrics if OBSERVATION in told]
        return ReadCounts(
            records=sum(counts.records for counts in found),
            bad=sum(counts.bad for counts in found),
            empty=sum(counts.empty for counts in found),
        )


def run_batch(topology: Topology, records: Frame, write: Write) -> ReadCounts:
    """Process all records of a DataFrame and write the result; its end closes all windows."""
    observation = Observation(OBSERVATION)
    write(result_frame(topology, records, observation=observation), topology.sink)
    if topology.source.bad_records is not None:
        write(bad_frame(topology, records), topology.source.bad_records)
    return counts_of(observation.get)


def run_stream(
    session: Any,
    topology: Topology,
    read: Read,
    write: Write,
    *,
    checkpoint: str,
    interval: str | None = None,
) -> Running:
    """Continue from a checkpoint to the current end, or every `interval` until stopped.

    A checkpoint belongs to its first topology; another one is refused.
    """
    trigger: dict[str, Any] = {"availableNow": True}
    if interval is not None:
        trigger = {"processingTime": f"{parse_duration(STEP, interval)} milliseconds"}
    keep_topology(session, topology, checkpoint)
    place = f"{checkpoint}/{QUERY}"
    result = result_frame(topology, read(place), observation=OBSERVATION)
    parts = [(result, topology.sink, place, output_mode(topology))]
    if topology.source.bad_records is not None:
        place = f"{checkpoint}/{BAD_RECORDS}"
        bad = bad_frame(topology, read(place))
        parts.append((bad, topology.source.bad_records, place, "append"))
    queries: list[Any] = []
    try:
        for frame, topic, query_place, mode in parts:
            writer = frame.writeStream.outputMode(mode).foreachBatch(batch_writer(write, topic))
            writer = writer.option("checkpointLocation", query_place).trigger(**trigger)
            # With this name, Spark refuses to run a topology twice in a session.
            queries.append(writer.queryName(f"{topology.source.topic} to {topic}").start())
    except BaseException:  # an interruption must not leave a query behind either
        for query in queries:
            # Report the first error.
            with suppress(Exception):
                query.stop()
        raise
    return Running(queries=tuple(queries))


def batch_writer(write: Write, topic: str) -> Callable[[Frame, int], None]:
    """Return the function for a batch, without references to Samsa, which a server lacks."""

    def write_batch(frame: Frame, _batch: int) -> None:
        write(frame, topic)

    return write_batch


def counts_of(told: Any) -> ReadCounts:
    row: Mapping[str, Any] = told if isinstance(told, Mapping) else told.asDict()
    if "schema" in row:
        # A stream on a Connect server distinguishes values from names.
        names = [column["name"] for column in row["schema"]["fields"]]
        row = dict(zip(names, row["values"], strict=True))
    return ReadCounts(records=row["records"], bad=row["bad"], empty=row["empty"])
