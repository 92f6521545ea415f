"""Reads the samples of a chart, a few metrics of one resource, and their age.

They come from the collector, which stores them; no broker is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.monitoring.selectors import METRICS
from console.queries import live
from gateway.access.grants import Resource
from gateway.access.operations import Kind

# The ranges of a chart in seconds, as its switch offers them.
RANGES_S: Final = (3_600, 21_600, 86_400, 604_800)
# Points of a line: more than the pixel columns of a screen.
MAX_POINTS: Final = 2_000
# Lines of a chart: more colours are hard to tell apart.
MAX_METRICS: Final = 6
# Kafka's protocol allows longer group names, but no such group has a page.
MAX_NAME: Final = 1_000
# Kinds whose series require a right on the cluster.
CLUSTER_WIDE: Final = frozenset({"cluster", "broker"})


class BadQuestion(ValueError):
    """A request that no series answers; the text says what is wrong and what is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    cluster_id: str
    kind: str
    name: str
    topic: str  # of a pair, whose `name` is the group
    metrics: tuple[str, ...]
    range_s: int
    points: int


def asked_of(query: Mapping[str, str]) -> Asked:
    """Return what a request asks for. Raises BadQuestion."""
    kind, name = query.get("kind", ""), query.get("name", "")
    if kind not in METRICS:
        raise BadQuestion(f"kind={kind[:64]!r}: give one of {', '.join(METRICS)}")
    metrics = tuple(query.get("metric", "").split(","))
    unknown = next((metric for metric in metrics if metric not in METRICS[kind]), None)
    if unknown is not None:
        known = ", ".join(METRICS[kind])
        raise BadQuestion(f"a {kind} has no metric {unknown[:64]!r}: give some of {known}")
    if len(metrics) > MAX_METRICS:
        raise BadQuestion(
            f"{len(metrics)} metrics asked for; at most {MAX_METRICS} fit into a chart"
        )
    topic = query.get("topic", "")
    if max(len(name), len(topic)) > MAX_NAME:
        raise BadQuestion(
            f"a name has {max(len(name), len(topic))} characters; at most {MAX_NAME} fit"
        )
    return Asked(
        cluster_id=query.get("cluster", ""),
        kind=kind,
        name=name if kind != "cluster" else "",
        topic=topic if kind == "pair" else "",
        metrics=metrics,
        range_s=_one_of(query, "range", RANGES_S),
        points=_points(query.get("points", str(MAX_POINTS))),
    )


def resources(asked: Asked) -> tuple[Resource, ...]:
    """Return the resources that the user must be allowed to view, all of them."""
    if asked.kind in CLUSTER_WIDE:
        return (Resource(kind=Kind.CLUSTER, cluster=asked.cluster_id),)
    if asked.kind == "topic":
        return (Resource(kind=Kind.TOPIC, cluster=asked.cluster_id, name=asked.name),)
    group = Resource(kind=Kind.GROUP, cluster=asked.cluster_id, name=asked.name)
    if asked.kind == "group":
        return (group,)
    return (group, Resource(kind=Kind.TOPIC, cluster=asked.cluster_id, name=asked.topic))


def series(asked: Asked, *, now_s: int) -> Mapping[str, Any]:
    """Return the samples, one list per metric. Raises live.CollectorFailed."""
    known = live.of(asked.cluster_id)
    if known.is_away:
        # Without the tables, the collector's cluster is unknown.
        raise live.CollectorFailed(known.reason)
    found = [_lane(asked, metric, now_s) for metric in asked.metrics]
    first = found[0]
    if any(
        (lane["start_s"], lane["step_s"]) != (first["start_s"], first["step_s"]) for lane in found
    ):
        raise live.CollectorFailed("the samples were moved to a coarser file meanwhile; ask again")
    length = min(len(lane["samples"]) for lane in found)
    return {
        "start_s": first["start_s"],
        "step_s": first["step_s"],
        "metrics": asked.metrics,
        # A gap is null, never zero.
        "samples": [lane["samples"][:length] for lane in found],
        "state": known.state.value,
        "age_s": known.age_s,
        "reason": known.reason,
    }


def _lane(asked: Asked, metric: str, now_s: int) -> Mapping[str, Any]:
    query: dict[str, str | int] = {"kind": asked.kind, "name": asked.name, "topic": asked.topic}
    # Every metric covers the same moments, whenever it is requested.
    times = {"from": now_s - asked.range_s, "to": now_s, "max_points": asked.points}
    return live.ask("/series", **query, metric=metric, **times)


def _one_of(query: Mapping[str, str], key: str, choices: tuple[int, ...]) -> int:
    written = query.get(key, str(choices[0]))
    if written not in map(str, choices):
        listed = ", ".join(map(str, choices))
        raise BadQuestion(f"{key}={written[:64]!r}: give one of {listed} seconds")
    return int(written)


def _points(written: str) -> int:
    number = int(written) if written.isascii() and written.isdigit() and len(written) < 6 else 0
    if not 0 < number <= MAX_POINTS:
        raise BadQuestion(f"points={written[:64]!r}: give 1 to {MAX_POINTS}")
    return number
