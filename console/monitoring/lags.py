"""Evaluates all groups: how far each is behind in each topic, and its verdict.

Pure. A pair of group and topic is evaluated if a commit or an end has moved since its last look;
one that is behind also without changes, since most verdicts are about silence.
"""

import heapq
from collections.abc import Iterator, Mapping
from typing import Final

from console.monitoring.groups import Group, Pair
from console.monitoring.observed import Observed
from console.monitoring.verdicts import (
    CAUGHT_UP,
    EMPTY,
    KEEPS_UP,
    REBALANCES,
    SEVERITY,
    SILENT,
    UNASSIGNED,
    VACANT,
    Eta,
    Evidence,
    Owned,
    Rates,
    Rule,
    eta,
    is_loss_ahead,
    judge,
    judge_owned,
)

# Rates are moving averages over these times: the range between both shows how certain the time to
# catch up is. The longer one restarts after a standstill: otherwise a group that resumes would seem
# never to catch up until that average forgets the pause.
RECENT_S: Final = 20.0
LONGER_S: Final = 300.0
# Three commits of a client that commits every 5 s, and some.
STANDSTILL_MS: Final = 20_000
# A pair that is behind without changes is looked at this often, so that a verdict is at most a
# minute late.
STILL_MS: Final = 40_000
# A group that rebalances is judged this often, also when nothing else changes.
RESTLESS_MS: Final = 10_000
# A group without members for this long does not rebalance, whatever it did before.
VACANT_MS: Final = 30_000
# Offsets that one leader is asked about at once; the inspection port takes no more.
MAX_ASKED: Final = 500

# topic, partition, offset
Place = tuple[str, int, int]


class Lags:
    """Lags and verdicts of all pairs. Not thread-safe."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._retention: Mapping[str, int] = {}
        self._default_retention: int | None = None
        # Pairs whose oldest unread record has an unknown timestamp, in order.
        self._undated: dict[Pair, None] = {}
        # Pairs that are behind, each once, by the time of their next look without changes.
        self._queue: list[tuple[int, int, Pair]] = []
        self._queued = 0  # total so far: a tie-breaker for equal times

    def set_retention(self, by_topic: Mapping[str, int], default_ms: int | None) -> None:
        """Set `retention.ms` by topic, and the default of the other topics."""
        self._retention, self._default_retention = by_topic, default_ms

    def look(self, now_ms: int, changed: set[str]) -> Iterator[None]:
        """Evaluate changed pairs, and pairs that stood still for long, pausing after each pair.

        Add the groups with changed offsets or results to `changed`. What brokers report during a
        pause waits for the next look.
        """
        observed = self._observed
        observed.settle_owned()
        pairs, observed.moved_pairs = observed.moved_pairs, set()
        for name in observed.moved_topics:
            if readers := observed.readers.get(name):
                pairs.update(readers.values())
        observed.moved_topics.clear()
        for pair in pairs:
            changed.add(pair.group)
            if self._is_known(pair):
                self._weigh(pair, now_ms)
            yield
        for pair in self._due(now_ms):
            before = _shown(pair)
            self._weigh(pair, now_ms)
            if _shown(pair) != before:
                changed.add(pair.group)
            yield
        for name in list(observed.restless):
            group = observed.groups.get(name)
            if group is None or group.rebalances.is_quiet:
                observed.restless.discard(name)
            if group is not None and now_ms - group.judged_ms >= RESTLESS_MS:
                changed.add(name)

    def _due(self, now_ms: int) -> Iterator[Pair]:
        """Return pairs that are behind and were not looked at for long."""
        while self._queue and self._queue[0][0] <= now_ms:
            _due_ms, _number, pair = heapq.heappop(self._queue)
            pair.is_queued = False
            if not self._is_known(pair) or not (is_waiting(pair) or is_moving(pair)):
                continue
            if now_ms - pair.looked_ms >= STILL_MS:
                yield pair
            else:
                self._queue_up(pair)

    def _queue_up(self, pair: Pair) -> None:
        """Schedule a look at a pair for when it has stood still for long."""
        if not pair.is_queued:
            pair.is_queued = True
            self._queued += 1
            heapq.heappush(self._queue, (pair.looked_ms + STILL_MS, self._queued, pair))

    def _weigh(self, pair: Pair, now_ms: int) -> None:
        observed = self._observed
        topic = observed.topics.get(pair.topic)
        slots = {} if topic is None else topic.slots
        sums = pair.history.look_at_all(slots, observed.starts, observed.ends, now_ms)
        group = observed.groups[pair.group]
        self._measure(pair, sums.committed, sums.end, now_ms, is_read=group.is_read)
        pair.lag, pair.unknown = sums.lag, sums.unknown
        pair.written_ms = sums.oldest_ms
        if sums.undated:
            self._undated.setdefault(pair)
        else:
            self._undated.pop(pair, None)
        pair.looked_ms = now_ms
        pair.owned = self._owned(pair, now_ms) if pair.uncommitted else None
        if is_waiting(pair) or is_moving(pair):
            self._queue_up(pair)
        pair.eta = None
        if pair.recent is not None and pair.longer is not None:
            pair.eta = eta(pair.lag, pair.recent, pair.longer)
        elif not sums.lag and not sums.unknown:
            pair.eta = Eta(0.0, 0.0)
        self._judge(pair, group, now_ms)

    def _measure(self, pair: Pair, committed: int, end: int, now_ms: int, *, is_read: bool) -> None:
        # A partition that is committed for the first time, or no more, moves the sums by all that
        # is in it.
        before, pair.sums = pair.sums, (committed, end, len(pair.history))
        seconds = (now_ms - pair.looked_ms) / 1000
        if not is_read:
            # Offsets that are set while nothing reads have no rate.
            pair.recent = pair.longer = None
            return
        if before is None or before[2] != len(pair.history) or seconds <= 0:
            return
        # A group whose offsets were reset, or a topic that was created again, has no rate.
        consumed = max(0, committed - before[0]) / seconds
        produced = max(0, end - before[1]) / seconds
        if consumed:
            pair.read_ms = now_ms
        if pair.recent is None or pair.longer is None or now_ms - pair.read_ms > STANDSTILL_MS:
            # Rates of before the standstill do not predict those after it; what arrives goes on.
            arrives = produced
            if pair.recent is not None:
                share = min(1.0, seconds / RECENT_S)
                arrives = pair.recent.moved(consumed, produced, share).produced
            pair.recent = pair.longer = Rates(consumed, arrives)
            pair.watched_ms = now_ms
            return
        pair.recent = pair.recent.moved(consumed, produced, min(1.0, seconds / RECENT_S))
        longer_s = min(LONGER_S, max(RECENT_S, (now_ms - pair.watched_ms) / 1000))
        pair.longer = pair.longer.moved(consumed, produced, min(1.0, seconds / longer_s))

    def _owned(self, pair: Pair, now_ms: int) -> Owned:
        """Return what is known of the partitions that members own without a commit."""
        observed = self._observed
        slots = observed.topics[pair.topic].slots if pair.topic in observed.topics else {}
        places = [(slots[each], end) for each, end in pair.uncommitted.items() if each in slots]
        arrived = sum(max(0, observed.ends[slot] - end) for slot, end in places)
        before_ms = 0 if pair.owned is None else pair.owned.arrived_ms
        return Owned(
            partitions=len(places),
            at_most=sum(observed.ends[slot] - observed.starts[slot] for slot, _end in places),
            arrived=arrived,
            arrived_ms=(before_ms or now_ms) if arrived else 0,
        )

    def _judge(self, pair: Pair, group: Group, now_ms: int) -> None:
        before = pair.verdict
        rule, since_ms = self._worst_rule(pair, group, now_ms)
        if rule is SILENT and not group.has_members:
            # The client that committed without joining the group is gone, in all of its topics.
            group.give_up()
            self._observed.moved_pairs.update(group.pairs.values())
            rule, since_ms = self._worst_rule(pair, group, now_ms)
        pair.verdict, pair.rule = rule.verdict, rule.key
        if pair.verdict is not before or not pair.verdict_ms:
            pair.verdict_ms = now_ms
        pair.since_ms = since_ms or pair.verdict_ms

    def _worst_rule(
        self, pair: Pair, group: Group, now_ms: int
    ) -> tuple[Rule[Evidence] | Rule[Owned], int]:
        """Return the rule of the worst partition, and since when it holds; 0 if it does not say."""
        history, is_read = pair.history, group.is_read
        is_loss = is_loss_ahead(
            pair.eta,
            lag=pair.lag,
            lag_ms=lag_ms(pair, now_ms),
            retention_ms=self._retention.get(pair.topic, self._default_retention),
        )
        fine = KEEPS_UP if pair.lag else CAUGHT_UP
        found: Rule[Evidence] | Rule[Owned] = fine if is_read else VACANT
        since_ms, severity, pair.worst_partition = 0, -1, -1
        reader = None
        for partition in history.suspects(now_ms) if is_read and not is_loss else history.lagging():
            reader = reader or group.reader
            evidence = history.evidence(partition, reader=reader, is_loss_ahead=is_loss)
            rule = judge(evidence, now_ms)
            if SEVERITY[rule.verdict] > severity:
                found, severity = rule, SEVERITY[rule.verdict]
                since_ms = rule.since_ms(evidence)
                pair.worst_partition = partition
        if pair.owned is not None and is_read:
            worse = judge_owned(pair.owned, now_ms)
            if worse is not None and SEVERITY[worse.verdict] > SEVERITY[found.verdict]:
                found, since_ms, pair.worst_partition = worse, worse.since_ms(pair.owned), -1
        return found, since_ms

    # --- timestamps of unread records -------------------------------------------------------------

    def questions(self) -> dict[int, list[tuple[Pair, Place]]]:
        """Return offsets to ask each leader about, a bounded number.

        Only those with an unknown timestamp: a group that stands still is asked about once.
        """
        asked: dict[int, list[tuple[Pair, Place]]] = {}
        for pair in list(self._undated):
            if any(len(places) >= MAX_ASKED for places in asked.values()):
                break
            # Move it to the end, so that pairs that find no room this time come first next time.
            del self._undated[pair]
            if self._is_known(pair):
                self._undated[pair] = None
                self._add_places(pair, asked)
        return {broker: places[:MAX_ASKED] for broker, places in asked.items()}

    def _is_known(self, pair: Pair) -> bool:
        group = self._observed.groups.get(pair.group)
        return group is not None and group.pairs.get(pair.topic) is pair

    def _add_places(self, pair: Pair, asked: dict[int, list[tuple[Pair, Place]]]) -> None:
        observed = self._observed
        topic = observed.topics.get(pair.topic)
        for partition in pair.history.lagging():
            slot = None if topic is None else topic.slots.get(partition)
            if slot is not None:
                committed, _ms = pair.history.committed(partition)
                following = max(committed, observed.starts[slot])
                if following < observed.ends[slot] and not pair.history.is_dated(
                    partition, following
                ):
                    places = asked.setdefault(observed.owners[slot], [])
                    places.append((pair, (pair.topic, partition, following)))

    def answer(self, asked: list[tuple[Pair, Place]], times: list[int | str | None]) -> None:
        """Take over timestamps of records; a pair counts from its oldest one."""
        for (pair, (_topic, partition, following)), written in zip(asked, times, strict=False):
            # Producers may write -1, which is no time; a lag since 1969 would look like loss ahead.
            if isinstance(written, int) and written > 0 and self._is_known(pair):
                pair.history.date(partition, following, written)
                # Evaluate the pair in the next look: whether loss is ahead depends on it.
                self._observed.moved_pairs.add(pair)


def _shown(pair: Pair) -> tuple[object, ...]:
    return (
        *(pair.lag, pair.unknown, pair.rule, pair.written_ms, pair.eta, pair.since_ms),
        pair.recent,
    )


def is_waiting(pair: Pair) -> bool:
    """Tell whether something waits, or may wait, so that silence says something."""
    return bool(pair.lag or pair.unknown or pair.uncommitted)


def is_moving(pair: Pair) -> bool:
    """Tell whether a pair has rates, which fall to zero unless it is looked at again."""
    rates = pair.recent
    return rates is not None and bool(rates.consumed or rates.produced)


def lag_ms(pair: Pair, now_ms: int) -> int | None:
    """Return the age of the oldest unread record; None if it is unknown."""
    if not pair.lag:
        return None if pair.unknown or pair.uncommitted else 0
    return max(0, now_ms - pair.written_ms) if pair.written_ms else None


def judge_group(group: Group, now_ms: int) -> None:
    """Set the verdict of a group: that of its worst topic, or one about its members."""
    before, group.judged_ms = group.verdict, now_ms
    worst = None
    for pair in group.pairs.values():
        if worst is None or SEVERITY[pair.verdict] > SEVERITY[worst.verdict]:
            worst = pair
    if worst is not None:
        group.verdict, group.rule, group.since_ms = worst.verdict, worst.rule, worst.since_ms
    else:
        rule = UNASSIGNED if group.has_members else EMPTY
        group.verdict, group.rule, group.since_ms = rule.verdict, rule.key, group.gone_ms
    if not group.rebalances.is_quiet:
        _judge_rebalances(group, now_ms)
    if group.verdict is not before or not group.verdict_ms:
        group.verdict_ms = now_ms
    group.since_ms = group.since_ms or group.verdict_ms


def _judge_rebalances(group: Group, now_ms: int) -> None:
    """Set the verdict of a group that rebalances again and again, unless it has a worse one."""
    rebalances = group.rebalances
    rebalances.look(now_ms)
    is_active = group.has_members or (group.gone_ms and now_ms - group.gone_ms < VACANT_MS)
    is_worse = SEVERITY[REBALANCES.verdict] > SEVERITY[group.verdict]
    if rebalances.since_ms and is_active and is_worse:
        group.verdict, group.rule = REBALANCES.verdict, REBALANCES.key
        group.since_ms = rebalances.since_ms


def group_eta(group: Group) -> Eta | None:
    """Return when the slowest topic of a group will have caught up; None if one never does."""
    found: list[Eta] = []
    for pair in group.pairs.values():
        if not len(pair.history):
            continue
        if pair.eta is None:
            return None
        found.append(pair.eta)
    highs = [each.high_s for each in found]
    known = [high for high in highs if high is not None]
    return Eta(
        max((each.low_s for each in found), default=0.0),
        max(known, default=0.0) if len(known) == len(highs) else None,
    )
