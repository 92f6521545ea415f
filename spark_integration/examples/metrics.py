"""Throughput by topic and lag by group, by windows, from the cluster's own metrics topic.

Copy it as the start of a job. Two topologies read the same topic and write one each; what they
compute is tried in memory, without Spark (`spark_integration.streams.memory`).
"""

from collections.abc import Mapping
from typing import Any, Final

from spark_integration.streams.aggregates import avg_of, count, max_of
from spark_integration.streams.building import stream
from spark_integration.streams.expressions import field
from spark_integration.streams.formats import json_format
from spark_integration.streams.topology import Topology
from spark_integration.streams.windows import tumbling

# Of all fields that a sample can have, those that are needed; one that a sample does not have is
# absent, and no aggregate counts it.
SAMPLE: Final = json_format(
    {
        "kind": "text",
        "time": "time",
        "topic": "text",
        "group": "text",
        "records_per_s": "double",
        "bytes_in_per_s": "double",
        "bytes_out_per_s": "double",
        "lag_records": "long",
        "lag_ms": "long",
    }
)
# Samples are 10 s apart, and written within 5 s; one that is later than this is dropped.
GRACE: Final = "30s"
TOPICS_WINDOW: Final = "1m"
GROUPS_WINDOW: Final = "5m"


def throughput(source: str, sink: str) -> Topology:
    """Return each topic's throughput: the mean of its samples in a window, and the highest."""
    return (
        stream(source, SAMPLE, time="time", grace=GRACE)
        .where(field("kind") == "topic")
        .group("topic")
        .window(tumbling(TOPICS_WINDOW))
        .aggregate(
            samples=count(),
            records_per_s=avg_of("records_per_s"),
            most_records_per_s=max_of("records_per_s"),
            bytes_in_per_s=avg_of("bytes_in_per_s"),
            bytes_out_per_s=avg_of("bytes_out_per_s"),
        )
        # Once, when the window has closed. Without it, a window is written each time it changes.
        .final()
        .to(sink)
    )


def lag(source: str, sink: str) -> Topology:
    """Return how far each group was behind: in records, and in time at its worst."""
    return (
        stream(source, SAMPLE, time="time", grace=GRACE)
        .where(field("kind") == "group")
        .group("group")
        .window(tumbling(GROUPS_WINDOW))
        .aggregate(
            samples=count(),
            mean_lag_records=avg_of("lag_records"),
            most_lag_records=max_of("lag_records"),
            most_lag_ms=max_of("lag_ms"),
        )
        .final()
        .to(sink)
    )


def sinks_of(source: str) -> tuple[str, str]:
    """Return the topics that get the throughput and the lag."""
    return f"{source}-throughput", f"{source}-lag"


def start(
    spark: Any,
    kafka: Mapping[str, str],
    *,
    source: str,
    checkpoint: str,
    every_s: int | None = None,
) -> list[Any]:
    """Start both: every so many seconds, or once to the end of what is there now."""
    # It needs Spark, which the topologies above do not.
    from spark_integration.streams.topics import Topics  # noqa: PLC0415

    by_topic, by_group = sinks_of(source)
    topics = Topics(session=spark, options=kafka)
    queries: list[Any] = []
    for topology in (throughput(source, by_topic), lag(source, by_group)):
        running = topics.run_stream(
            topology,
            checkpoint=f"{checkpoint}/{topology.sink}",
            # The first run begins here; later ones go on from the checkpoint.
            start={"startingOffsets": "earliest"},
            interval=None if every_s is None else f"{every_s}s",
        )
        queries += running.queries
    return queries


def tell(progress: Any) -> str:
    """Say what a batch did; the query's name says from where to where it goes."""
    rows = progress["numInputRows"]
    return f"{rows} samples read, {progress['name']}" if rows else ""
