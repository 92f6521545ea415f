"""Binds topologies to topics of a cluster, by a source and a sink registered in Spark.

The names of options are those of Spark's own Kafka source, which `format("samsa")` takes too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_integration.streams.running import (
    ReadCounts,
    Running,
    Write,
    run_batch,
    run_stream,
)
from spark_integration.streams.spark_records import Frame
from spark_integration.streams.topology import Topology

FORMAT: Final = "samsa"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics of one cluster in one session of Spark."""

    session: Any
    # Connection options such as `kafka.bootstrap.servers`; they may hold passwords.
    options: Mapping[str, str] = field(repr=False)
    format: str = FORMAT

    def run_batch(
        self, topology: Topology, *, ranges: Mapping[str, str] | None = None
    ) -> ReadCounts:
        """Run over a range, by `startingOffsets`, `endingTimestamp` etc.; by default over all."""
        reader = self.session.read.format(self.format).options(**self.options, **(ranges or {}))
        records = reader.option("subscribe", topology.source.topic).load()
        return run_batch(topology, records, appender(self.format, self.options))

    def run_stream(
        self,
        topology: Topology,
        *,
        checkpoint: str,
        start: Mapping[str, str] | None = None,
        interval: str | None = None,
    ) -> Running:
        """Run as a stream; `start` is where the first run begins, by default at the end."""

        def read(place: str) -> Frame:
            reader = self.session.readStream.format(self.format)
            reader = reader.options(**self.options, **(start or {}))
            # The source cannot see its query's checkpoint, which names its stored first offsets.
            reader = reader.option("checkpointLocation", place)
            return reader.option("subscribe", topology.source.topic).load()

        return run_stream(
            self.session,
            topology,
            read,
            appender(self.format, self.options),
            checkpoint=checkpoint,
            interval=interval,
        )


def appender(name: str, options: Mapping[str, str]) -> Write:
    """Return a function that appends a DataFrame to a topic; it is sent to a Connect server."""
    told = dict(options)

    def append(frame: Frame, topic: str) -> None:
        writer = frame.write.format(name).options(**told).option("topic", topic)
        writer.mode("append").save()

    return append
