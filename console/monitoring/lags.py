"""Evaluates all groups: how far each is behind in each topic, and its verdict.

Pure. A pair of group and topic is evaluated if a commit or an end has moved since its last look;
one that is behind also without changes, since most verdicts are about silence.
"""

import heapq
from collections.abc import Iterator, Mapping
from typing import Final

from console.monitoring.observed import Group, Observed, Pair
from console.monitoring.verdicts import (
    SEVERITY,
    Eta,
    Rates,
    Verdict,
    eta,
    is_loss_ahead,
    judge,
    worst,
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
            before = (pair.lag, pair.unknown, pair.verdict, pair.written_ms, pair.eta)
            self._weigh(pair, now_ms)
            if before != (pair.lag, pair.unknown, pair.verdict, pair.written_ms, pair.eta):
                changed.add(pair.group)
            yield

    def _due(self, now_ms: int) -> Iterator[Pair]:
        """Return pairs that are behind and were not looked at for long."""
        while self._queue and self._queue[0][0] <= now_ms:
            _due_ms, _number, pair = heapq.heappop(self._queue)
            pair.is_queued = False
            if not self._is_known(pair) or not (pair.lag or pair.unknown):
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
        self._measure(pair, sums.committed, sums.end, now_ms)
        pair.lag, pair.unknown = sums.lag, sums.unknown
        pair.written_ms = sums.oldest_ms
        if sums.undated:
            self._undated.setdefault(pair)
        else:
            self._undated.pop(pair, None)
        pair.looked_ms = now_ms
        if pair.lag or pair.unknown:
            self._queue_up(pair)
        pair.eta = None
        if pair.recent is not None and pair.longer is not None:
            pair.eta = eta(pair.lag, pair.recent, pair.longer)
        elif not sums.lag and not sums.unknown:
            pair.eta = Eta(0.0, 0.0)
        self._judge(pair, now_ms)

    def _measure(self, pair: Pair, committed: int, end: int, now_ms: int) -> None:
        before, pair.sums = pair.sums, (committed, end)
        seconds = (now_ms - pair.looked_ms) / 1000
        if before is None or seconds <= 0:
            return
        # A group whose offsets were reset, or a topic that was created again, has no rate.
        consumed = max(0, committed - before[0]) / seconds
        produced = max(0, end - before[1]) / seconds
        if consumed:
            pair.read_ms = now_ms
        if pair.recent is None or pair.longer is None or now_ms - pair.read_ms > STANDSTILL_MS:
            # Rates of before the standstill do not predict those after it.
            pair.recent = pair.longer = Rates(consumed, produced)
            pair.since_ms = now_ms
            return
        pair.recent = pair.recent.moved(consumed, produced, min(1.0, seconds / RECENT_S))
        longer_s = min(LONGER_S, max(RECENT_S, (now_ms - pair.since_ms) / 1000))
        pair.longer = pair.longer.moved(consumed, produced, min(1.0, seconds / longer_s))

    def _judge(self, pair: Pair, now_ms: int) -> None:
        is_loss = is_loss_ahead(
            pair.eta,
            lag=pair.lag,
            lag_ms=lag_ms(pair, now_ms),
            retention_ms=self._retention.get(pair.topic, self._default_retention),
        )
        pair.verdict, pair.worst_partition = Verdict.OK, -1
        history = pair.history
        for partition in history.lagging() if is_loss else history.suspects(now_ms):
            evidence = history.evidence(partition, is_loss_ahead=is_loss)
            verdict = judge(evidence, now_ms).verdict
            if SEVERITY[verdict] > SEVERITY[pair.verdict]:
                pair.verdict, pair.worst_partition = verdict, partition

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


def lag_ms(pair: Pair, now_ms: int) -> int | None:
    """Return the age of the oldest unread record; None if it is unknown."""
    if not pair.lag:
        return None if pair.unknown else 0
    return max(0, now_ms - pair.written_ms) if pair.written_ms else None


def group_verdict(group: Group) -> Verdict:
    return worst(pair.verdict for pair in group.pairs.values())


def group_eta(group: Group) -> Eta | None:
    """Return when the slowest topic of a group will have caught up; None if one never does."""
    found: list[Eta] = []
    for pair in group.pairs.values():
        if pair.eta is None:
            return None
        found.append(pair.eta)
    highs = [each.high_s for each in found]
    known = [high for high in highs if high is not None]
    return Eta(
        max((each.low_s for each in found), default=0.0),
        max(known, default=0.0) if len(known) == len(highs) else None,
    )
