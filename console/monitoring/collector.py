"""Turns the brokers' feeds into tables, details and series, without any sockets.

Pure: time is an argument. Call `take` for each answer of a broker, `look` every three seconds and
`sample` every ten; changes are published as one step of the deltas.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from console.monitoring.broker_detail import broker_detail
from console.monitoring.deltas import Deltas, Row
from console.monitoring.group_detail import EVERYTHING, MAX_DETAIL, Part, group_detail
from console.monitoring.groups import Group, Pair
from console.monitoring.lags import (
    Lags,
    group_eta,
    judge_group,
    lag_ms,
)
from console.monitoring.metric_records import Moments, Published
from console.monitoring.observed import BrokerView, Observed
from console.monitoring.recent import SHOWN, Recent
from console.monitoring.rings import BLOCK_S, KINDS, STEP_S, FullBlock, PartitionRing, Ring
from console.monitoring.tables import ROW_TYPES, pair_key
from console.monitoring.topic_detail import topic_detail
from console.monitoring.verdicts import SEVERITY, Eta, Verdict

# Counters of a topic at its last sample: records, bytes in, bytes out.
Counters = tuple[int, int, int]


class Collector:
    """The state of the collector. Not thread-safe."""

    def __init__(self, run: str) -> None:
        self.observed = Observed()
        self.lags = Lags(self.observed)
        self.deltas = Deltas(run, ROW_TYPES)
        self.rings = {name: Ring(kind) for name, kind in KINDS.items()}
        self.partition_ring = PartitionRing()
        self.recent = {kind: Recent(kind) for kind in SHOWN}
        self.offline_partitions: int | None = None  # None until the database has been read
        self.told_ms = 0  # when a broker answered last
        self.published: Published | None = None  # None if no topic gets the samples
        self._counters: dict[str, Counters] = {}
        self._rates: dict[str, tuple[float, float, float]] = {}
        self._sampled_ms = 0
        self._worst: dict[str, tuple[int, int, str, Verdict]] = {}
        # The published pairs of each group, by key.
        self._pair_keys: dict[str, dict[str, str]] = {}
        # Changed groups whose rows are of the look before.
        self._unpublished: set[str] = set()

    def take(self, broker_id: int, told: Mapping[str, Any], *, now_ms: int) -> bool:
        """Apply a broker's feed; return whether it concerns a group or a topic."""
        self.observed.take(broker_id, told, now_ms=now_ms)
        self.told_ms = now_ms
        return bool(self.observed.touched_groups or self.observed.touched_topics)

    def set_brokers(self, addresses: Mapping[int, str]) -> None:
        """Set the brokers of the cluster, and drop the data of all others."""
        brokers = self.observed.brokers
        for broker_id in [each for each in brokers if each not in addresses]:
            self.observed.forget_broker(broker_id)
        for broker_id, address in addresses.items():
            brokers.setdefault(broker_id, BrokerView(id=broker_id)).address = address

    # --- publishing ----------------------------------------------------------------------------

    def look(self, now_ms: int) -> Iterator[None]:
        """Evaluate all groups and publish changes, pausing so that other tasks can run.

        What brokers report during a pause is published by this look or the next one. A reader that
        fetches all rows during a pause gets part of the coming step early, and then again.
        """
        observed = self.observed
        groups, topics = observed.touched_groups, set[str]()
        observed.touched_groups, self._unpublished = set(), groups
        yield from self.lags.look(now_ms, groups)
        for name in groups:
            topics |= self._publish_group(name, now_ms)
            yield
        self._unpublished = set()
        for topic in topics:
            self._find_worst(topic)
            yield
        touched, observed.touched_topics = observed.touched_topics, set()
        for name in touched:
            self._publish_topic(name)
            yield
        self.publish_brokers()

    def look_at_once(self, now_ms: int) -> None:
        """Do all of a look without a pause."""
        for _pause in self.look(now_ms):
            pass

    def publish_brokers(self) -> None:
        """Publish the brokers' rows, and end the step."""
        for view in self.observed.brokers.values():
            self.deltas.put("brokers", str(view.id), broker_row(view))
        self.deltas.keep_only("brokers", {str(each): None for each in self.observed.brokers})
        self.deltas.close_step()

    def _publish_group(self, name: str, now_ms: int) -> set[str]:
        """Publish a group with its pairs; return the topics whose pairs changed."""
        group = self.observed.groups.get(name)
        keys = {} if group is None else {pair_key(name, topic): topic for topic in group.pairs}
        before, changed = self._pair_keys.get(name, {}), set()
        for key in before.keys() - keys.keys():
            self.deltas.drop("pairs", key)
            changed.add(before[key])
        if group is None:
            self._pair_keys.pop(name, None)
            self.deltas.drop("groups", name)
            return changed
        self._pair_keys[name] = keys
        judge_group(group, now_ms)
        self.deltas.put("groups", name, group_row(group))
        for key, topic in keys.items():
            if self.deltas.put("pairs", key, pair_row(group, group.pairs[topic])):
                changed.add(topic)
        return changed

    def _publish_topic(self, name: str) -> None:
        topic = self.observed.topics.get(name)
        if topic is None:
            self.deltas.drop("topics", name)
            return
        worst = self._worst.get(name)
        rates = self._rates.get(name, (None, None, None))
        lag = (None, "", "") if worst is None else (worst[1], worst[3].value, worst[2])
        self.deltas.put("topics", name, (name, len(topic.slots), topic.size, *rates, *lag))

    def _find_worst(self, topic: str) -> None:
        """Find the worst group of a topic, by verdict, then by lag."""
        found: tuple[int, int, str, Verdict] | None = None
        for pair in self.observed.readers.get(topic, {}).values():
            here = (SEVERITY[pair.verdict], pair.lag, pair.group, pair.verdict)
            if found is None or here > found:
                found = here
        if self._worst.get(topic) == found:
            return
        if found is None:
            del self._worst[topic]
        else:
            self._worst[topic] = found
        self.observed.touched_topics.add(topic)

    # --- series --------------------------------------------------------------------------------

    def sample(self, now_ms: int) -> list[FullBlock]:
        """Sample all series; return the blocks that are full."""
        at_s = now_ms // 1000
        at_s -= at_s % STEP_S
        full = (
            self.end_blocks() if any(_is_over(ring, at_s) for ring in self.rings.values()) else []
        )
        for ring in self.rings.values():
            ring.block_s = at_s - at_s % BLOCK_S
        self.partition_ring.sample(self.observed.ends, self.observed.taken_over)
        self.observed.taken_over.clear()
        self._measure_topics(now_ms)
        for view in self.observed.brokers.values():
            if not view.failure:
                view.mark(now_ms)
        self._set_topics()
        lag = self._set_groups(now_ms)
        self._set_brokers(lag)
        for ring in self.rings.values():
            ring.sample(at_s)
        for kind, recent in self.recent.items():
            recent.sample(self.rings[kind])
        return full

    def moments(self, now_ms: int, cluster_id: str) -> Moments:
        """Return an immutable copy of the newest sample of every series."""
        return Moments(
            at_ms=now_ms - now_ms % (STEP_S * 1000),
            cluster_id=cluster_id,
            kinds={name: ring.moment() for name, ring in self.rings.items()},
            partitions={name: len(topic.slots) for name, topic in self.observed.topics.items()},
        )

    def end_blocks(self) -> list[FullBlock]:
        """End the current blocks, as a shutdown does."""
        return [ring.finish() for ring in self.rings.values() if ring.slots]

    def _measure_topics(self, now_ms: int) -> None:
        seconds = (now_ms - self._sampled_ms) / 1000
        counters = {
            name: (topic.records, topic.bytes_in, topic.bytes_out)
            for name, topic in self.observed.topics.items()
        }
        if self._sampled_ms and seconds > 0:
            for name, (records, bytes_in, bytes_out) in counters.items():
                before = self._counters.get(name)
                if before is None:
                    continue
                # The counters of a topic that was deleted and created again restart at zero.
                rates = (
                    round(max(0, records - before[0]) / seconds, 1),
                    round(max(0, bytes_in - before[1]) / seconds, 1),
                    round(max(0, bytes_out - before[2]) / seconds, 1),
                )
                if self._rates.get(name) != rates:
                    self._rates[name] = rates
                    self.observed.touched_topics.add(name)
        for name in self._rates.keys() - counters.keys():
            del self._rates[name]
        self._counters, self._sampled_ms = counters, now_ms

    # Each of the three sets every series of its kinds to the present values.

    def _set_topics(self) -> None:
        nothing = (math.nan,) * 3
        ring = self.rings["topic"]
        for name, topic in self.observed.topics.items():
            records, bytes_in, bytes_out = self._rates.get(name, nothing)
            ring.set((name,), (records, topic.size, bytes_in, bytes_out))

    def _set_groups(self, now_ms: int) -> int:
        """Set the series of groups and pairs; return the lag of all groups together."""
        groups, pairs, lag = self.rings["group"], self.rings["pair"], 0
        for name, group in self.observed.groups.items():
            whole, oldest = 0, math.nan
            for topic, pair in group.pairs.items():
                if not len(pair.history):
                    continue  # never committed, which is no lag of zero
                age = number(lag_ms(pair, now_ms))
                pairs.set((name, topic), (pair.lag, age))
                whole += pair.lag
                # Keep the worst known age: a comparison with NaN is false.
                if age >= oldest or math.isnan(oldest):
                    oldest = age
            groups.set((name,), (whole, oldest))
            lag += whole
        return lag

    def _set_brokers(self, lag: int) -> None:
        views = self.observed.brokers.values()
        serving = [view for view in views if not view.failure]
        for view in serving:
            values = [total(view, key) for key in BROKER_TOTALS]
            self.rings["broker"].set((str(view.id),), values)
        # A sum without one of its parts would look like a drop, so leave a gap.
        if serving and len(serving) == len(views):
            sums = [sum(total(view, key) for view in serving) for key in CLUSTER_TOTALS]
            self.rings["cluster"].set(("",), [*sums, lag])

    # --- details -------------------------------------------------------------------------------

    def group_detail(self, name: str, part: Part = EVERYTHING) -> dict[str, Any] | None:
        """Return a group's topics, partitions and members; None if there is no such group.

        And its rows of the tables, since a reader's mirror may be older than the verdicts here.
        """
        group = self.observed.groups.get(name)
        if group is None:
            return None
        pairs = self.deltas.rows("pairs")
        keys = [pair_key(name, topic) for topic in group.pairs]
        is_changed = name in self.observed.touched_groups or name in self._unpublished
        return {
            **group_detail(group, self.observed, self.partition_ring, part),
            "row": self.deltas.rows("groups").get(name),
            "pairs": [pairs[key] for key in keys if key in pairs],
            # Whether these rows contain all that was reported of the group.
            "is_published": not is_changed,
        }

    def topic_detail(
        self, name: str, *, first: int = 0, rows: int = MAX_DETAIL
    ) -> dict[str, Any] | None:
        """Return a part of a topic's partitions, and its groups; None if there is no such topic."""
        return topic_detail(self.observed, self.partition_ring, name, first=first, rows=rows)

    def broker_detail(self, broker_id: int) -> dict[str, Any] | None:
        """Return the APIs and clients of a broker; None if there is no such broker."""
        return broker_detail(self.observed, broker_id)


def _is_over(ring: Ring, at_s: int) -> bool:
    return bool(ring.block_s) and ring.block_s != at_s - at_s % BLOCK_S


BROKER_TOTALS: Final = (
    *("bytes_in_per_s", "bytes_out_per_s", "requests_per_s", "connections", "log_bytes"),
    *("memory_bytes", "disk_free_bytes", "loop_delay_p99_ms"),
)
CLUSTER_TOTALS: Final = BROKER_TOTALS[:5]


def total(view: BrokerView, key: str) -> float:
    """Return one of a broker's totals; NaN if its release does not report it."""
    return number(view.totals.get(key))


def number(value: float | None) -> float:
    return math.nan if value is None else value


def broker_row(view: BrokerView) -> Row:
    totals = view.totals
    return (
        *(view.id, view.address, view.answered_ms, view.failure),
        *(totals.get(key, 0) for key in BROKER_TOTALS[:4]),
        totals.get("partitions", 0),
        *(totals.get(key) for key in ("log_bytes", "memory_bytes", "disk_size_bytes")),
        *(totals.get(key) for key in ("disk_used_bytes", "disk_free_bytes", "disk_device")),
        *(totals.get(key) for key in ("loop_delay_p99_ms", "folders_aside")),
    )


def group_row(group: Group) -> Row:
    lag = unknown = oldest_ms = partitions = at_most = 0
    for pair in group.pairs.values():
        lag += pair.lag
        unknown += pair.unknown
        if pair.lag and pair.written_ms and (not oldest_ms or pair.written_ms < oldest_ms):
            oldest_ms = pair.written_ms
        if pair.owned is not None:
            partitions += pair.owned.partitions
            at_most += pair.owned.at_most
    _name, kind, state, epoch, members = group.row[:5]
    return (
        *(lag, unknown, group.verdict.value, oldest_ms, *eta_cells(group_eta(group))),
        *(group.rule, group.since_ms, partitions, at_most),
        *(group.name, kind, state, epoch, members, group.rebalances.total, len(group.pairs)),
        *(group.owned, group.rebalances.recent, group.seen_ms),
    )


def pair_row(group: Group, pair: Pair) -> Row:
    owned = (0, 0) if pair.owned is None else (pair.owned.partitions, pair.owned.at_most)
    oldest_ms = pair.written_ms if pair.lag else 0
    return (
        *(pair.lag, pair.unknown, pair.verdict.value, oldest_ms, *eta_cells(pair.eta)),
        *(pair.rule, pair.since_ms, *owned, group.name, pair.topic, len(pair.history)),
    )


def eta_cells(eta: Eta | None) -> tuple[int | None, int | None]:
    if eta is None:
        return (None, None)
    return (round(eta.low_s), None if eta.high_s is None else round(eta.high_s))
