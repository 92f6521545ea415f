"""Lists the examples, and the needs of each: topics, generated records, and the job.

No module of Spark is imported before a job starts: listing the examples needs no extra.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from shlex import quote
from typing import Any, Final

from spark_integration.examples import made_up, metrics
from spark_integration.examples.made_up import MadeUp

# Generated records are kept for a week, so that a forgotten example does not fill the disk.
KEPT: Final[Mapping[str, str]] = {"retention.ms": str(7 * 24 * 3600 * 1000)}
TABLE: Final[Mapping[str, str]] = {"cleanup.policy": "compact"}
PRODUCTS: Final = "example-products"
ORDERS_TO: Final = (
    "example-orders-enriched",
    "example-orders-unmatched",
    "example-orders-bad",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The settings of a run."""

    # Options of `format("samsa")` for the cluster; may contain passwords.
    kafka: Mapping[str, str] = field(repr=False)
    # The topic to read.
    topic: str
    folder: str
    checkpoint: str
    # None: once, to the current end.
    every_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create if it is missing."""

    name: str
    configs: Mapping[str, str] = field(default_factory=lambda: KEPT)
    # Its first records.
    seed: Callable[[datetime], Iterator[MadeUp]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An example that runs: how to start it, report a batch, and show the results."""

    start: Callable[[Any, Place], list[Any]]
    tell: Callable[[Any], str]
    look: Callable[[Any, Place], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    name: str
    summary: str
    page: str
    source: str
    load: Callable[[], Job]
    # The topic for generated records; empty if the cluster fills one.
    topic: str = ""
    make_up: Callable[[Random, Iterator[datetime]], Iterator[MadeUp]] | None = None
    # The folders that it writes, below its folder.
    folders: tuple[str, ...] = ()
    # The other topics.
    topics: Callable[[str], tuple[NewTopic, ...]] = lambda _topic: ()
    # Commands for users who want to see more.
    next_steps: Callable[[Place], tuple[str, ...]]


def load_clickstream() -> Job:
    from spark_integration.examples import clickstream  # noqa: PLC0415 (an extra)

    def start(spark: Any, place: Place) -> list[Any]:
        return clickstream.start(
            spark,
            place.kafka,
            topic=place.topic,
            folder=place.folder,
            checkpoint=place.checkpoint,
            every_s=place.every_s,
        )

    def look(spark: Any, place: Place) -> list[str]:
        return clickstream.look(spark, place.folder)

    return Job(start=start, tell=clickstream.tell, look=look)


def load_enrichment() -> Job:
    from spark_integration.examples import enrichment  # noqa: PLC0415 (an extra)

    def start(spark: Any, place: Place) -> list[Any]:
        return enrichment.start(
            spark,
            place.kafka,
            orders=place.topic,
            products=PRODUCTS,
            sinks=ORDERS_TO,
            checkpoint=place.checkpoint,
            every_s=place.every_s,
        )

    def look(spark: Any, place: Place) -> list[str]:
        return enrichment.look(spark, place.kafka, ORDERS_TO)

    return Job(start=start, tell=enrichment.tell, look=look)


def load_metrics() -> Job:
    def start(spark: Any, place: Place) -> list[Any]:
        return metrics.start(
            spark,
            place.kafka,
            source=place.topic,
            checkpoint=place.checkpoint,
            every_s=place.every_s,
        )

    def look(_spark: Any, _place: Place) -> list[str]:
        return [f"A window is written once a sample comes {metrics.GRACE} after its end."]

    return Job(start=start, tell=metrics.tell, look=look)


def topics_of_orders(_topic: str) -> tuple[NewTopic, ...]:
    table = NewTopic(name=PRODUCTS, configs=TABLE, seed=made_up.products)
    return (table, *(NewTopic(name=name) for name in ORDERS_TO))


def topics_of_metrics(topic: str) -> tuple[NewTopic, ...]:
    return tuple(NewTopic(name=name) for name in metrics.sinks_of(topic))


def consume(topic: str) -> str:
    return f"./samsa consume {topic} -o beginning -e"


def change_products(_place: Place) -> tuple[str, ...]:
    add = f"./samsa produce {PRODUCTS} -k {made_up.UNKNOWN_PRODUCT}"
    row = """'{"name":"spoon","price":3.5}'"""
    return (consume(ORDERS_TO[0]), consume(ORDERS_TO[1]), f"{add} {row}")


EXAMPLES: Final[Mapping[str, Example]] = {
    example.name: example
    for example in (
        Example(
            name="clickstream",
            summary="clicks of a topic to Parquet files, in folders of one hour each",
            page="docs/howto/write-hourly-parquet.md",
            source="spark_integration/examples/clickstream.py",
            load=load_clickstream,
            topic="example-clicks",
            make_up=made_up.clicks,
            folders=("clicks", "aside"),
            next_steps=lambda place: (f"find {quote(place.folder)} -name '*.parquet'",),
        ),
        Example(
            name="enrichment",
            summary="orders of a topic, joined with a table of products, to a topic",
            page="docs/howto/join-a-stream-with-a-table.md",
            source="spark_integration/examples/enrichment.py",
            load=load_enrichment,
            topic="example-orders",
            make_up=made_up.orders,
            topics=topics_of_orders,
            next_steps=change_products,
        ),
        Example(
            name="metrics",
            summary="throughput by topic and lag by group, by windows, from the metrics topic",
            page="docs/howto/roll-up-metrics.md",
            source="spark_integration/examples/metrics.py",
            load=load_metrics,
            topics=topics_of_metrics,
            next_steps=lambda place: tuple(map(consume, metrics.sinks_of(place.topic))),
        ),
    )
}
