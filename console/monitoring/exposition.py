"""Formats the collector's numbers for Prometheus, with one row of a table per metric.

Pure. Metrics per group and topic are exported here and not by brokers, since no broker knows both
the committed offsets and the ends of the partitions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from console.monitoring.collector import Collector
from console.monitoring.groups import Group, Pair
from console.monitoring.lags import lag_ms
from console.monitoring.metric_records import Published
from console.monitoring.observed import BrokerView
from console.monitoring.verdicts import Verdict

Sample = tuple[dict[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    help: str
    samples: Callable[[Collector, int], Iterator[Sample]]
    kind: str = "gauge"


def _pairs(collector: Collector) -> Iterator[tuple[Group, Pair, dict[str, str]]]:
    for group in collector.observed.groups.values():
        for pair in group.pairs.values():
            yield group, pair, {"group": group.name, "topic": pair.topic}


def _lag(collector: Collector, _now_ms: int) -> Iterator[Sample]:
    # A group that has never committed in a topic has no lag there, not one of zero.
    pairs = ((pair, labels) for _group, pair, labels in _pairs(collector))
    return ((labels, pair.lag) for pair, labels in pairs if len(pair.history))


def _lag_seconds(collector: Collector, now_ms: int) -> Iterator[Sample]:
    for _group, pair, labels in _pairs(collector):
        age = lag_ms(pair, now_ms)
        if age is not None:
            yield labels, age / 1000


def _verdicts(collector: Collector, _now_ms: int) -> Iterator[Sample]:
    for _group, pair, labels in _pairs(collector):
        yield {**labels, "verdict": pair.verdict.value}, 1
    # What is true of a group and of none of its topics.
    for group in collector.observed.groups.values():
        if all(pair.verdict is not group.verdict for pair in group.pairs.values()):
            yield {"group": group.name, "topic": "", "verdict": group.verdict.value}, 1


def _offline(collector: Collector, _now_ms: int) -> Iterator[Sample]:
    if collector.offline_partitions is not None:
        yield {}, collector.offline_partitions


def _brokers(value: Callable[[BrokerView, int], float | None]) -> Callable[..., Iterator[Sample]]:
    def samples(collector: Collector, now_ms: int) -> Iterator[Sample]:
        for view in collector.observed.brokers.values():
            found = value(view, now_ms)
            if found is not None:
                yield {"broker": str(view.id)}, found

    return samples


def _published(value: Callable[[Published], int]) -> Callable[..., Iterator[Sample]]:
    def samples(collector: Collector, _now_ms: int) -> Iterator[Sample]:
        if collector.published is not None:
            yield {}, value(collector.published)

    return samples


METRICS: Final = (
    Metric(
        name="samsa_group_lag_records",
        help="Records that may be read and are not committed yet.",
        samples=_lag,
    ),
    Metric(
        name="samsa_group_lag_seconds",
        help="Age of the oldest record that is not committed yet, if a leader has reported it.",
        samples=_lag_seconds,
    ),
    Metric(
        name="samsa_group_verdict",
        help="1 for the verdict on a group in a topic, and on a group as a whole where no topic"
        f" has it: {', '.join(verdict.value for verdict in Verdict)}.",
        samples=_verdicts,
    ),
    Metric(
        name="samsa_offline_partitions",
        help="Partitions without a leader.",
        samples=_offline,
    ),
    Metric(
        name="samsa_broker_up",
        help="1 where a broker answered the collector's last question.",
        samples=_brokers(lambda view, _now: float(not view.failure and view.answered_ms > 0)),
    ),
    Metric(
        name="samsa_broker_disk_free_bytes",
        help="Free bytes of the file system of a broker's log dir.",
        samples=_brokers(lambda view, _now: view.totals.get("disk_free_bytes")),
    ),
    Metric(
        name="samsa_broker_disk_used_bytes",
        help="Used bytes of that file system; used and free leave out what is kept for root.",
        samples=_brokers(lambda view, _now: view.totals.get("disk_used_bytes")),
    ),
    Metric(
        name="samsa_broker_disk_size_bytes",
        help="Size of the file system of a broker's log dir.",
        samples=_brokers(lambda view, _now: view.totals.get("disk_size_bytes")),
    ),
    Metric(
        name="samsa_broker_log_bytes",
        help="Bytes of all partitions of a broker.",
        samples=_brokers(lambda view, _now: view.totals.get("log_bytes")),
    ),
    Metric(
        name="samsa_broker_loop_delay_p99_seconds",
        help="How late a broker's event loop was, at the 99th percentile.",
        samples=_brokers(
            lambda view, _now: (
                None if (delay := view.totals.get("loop_delay_p99_ms")) is None else delay / 1000
            )
        ),
    ),
    Metric(
        name="samsa_collector_age_seconds",
        help="How long ago a broker answered the collector last.",
        samples=lambda collector, now_ms: iter(
            [({}, (now_ms - collector.told_ms) / 1000)] if collector.told_ms else []
        ),
    ),
    Metric(
        name="samsa_metrics_topic_records_total",
        help="Records that brokers have acknowledged in the topic of --metrics-topic.",
        samples=_published(lambda published: published.written),
        kind="counter",
    ),
    Metric(
        name="samsa_metrics_topic_dropped_total",
        help="Records for that topic that were dropped, since brokers were away or too slow.",
        samples=_published(lambda published: published.dropped),
        kind="counter",
    ),
)


def exposition(collector: Collector, now_ms: int) -> Iterator[str]:
    """Return the text in pieces, one sample each."""
    for metric in METRICS:
        yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
        # A list, because the numbers may change between two pieces.
        for labels, value in list(metric.samples(collector, now_ms)):
            written = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
            yield (
                f"{metric.name}{{{written}}} {value:g}\n"
                if written
                else (f"{metric.name} {value:g}\n")
            )


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
