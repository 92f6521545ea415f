"""One look at all groups: how far each is behind in each topic, and what that means.

Pure. A pair of group and topic is weighed where a commit or an end has moved since its last look;
one that is behind also where nothing has, since silence is what most verdicts are about.
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

# Rates are averages that fade over so long: a range between both says how sure the time to catch up
# is. The longer one begins again after a standstill: else a group that goes on would be said never
# to catch up for as long as that average remembers.
RECENT_S: Final = 20.0
LONGER_S: Final = 300.0
# Three commits of a client that commits every 5 s, and some.
STANDSTILL_MS: Final = 20_000
# A pair that is behind and where nothing moves is looked at this often: a verdict is told within a
# minute of its truth.
STILL_MS: Final = 40_000
# Places of which one leader is asked at once; the inspection port takes no more.
MAX_ASKED: Final = 500

# topic, partition, offset
Place = tuple[str, int, int]


class Lags:
    """Belongs to one thread."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._retention: Mapping[str, int] = {}
        self._default_retention: int | None = None
        # Pairs with records that wait of which nobody has told when they were written, in turn.
        self._undated: dict[Pair, None] = {}
        # Pairs that are behind, each once, by when they are looked at though nothing moves.
        self._queue: list[tuple[int, int, Pair]] = []
        self._queued = 0  # how many ever: those of one moment are looked at in turn

    def set_retention(self, by_topic: Mapping[str, int], default_ms: int | None) -> None:
        """Take over `retention.ms` of the topics that set it, and of the others."""
        self._retention, self._default_retention = by_topic, default_ms

    def look(self, now_ms: int, changed: set[str]) -> Iterator[None]:
        """Weigh what has moved, and what has stood still for long, with a pause after each pair.

        Add the names of groups of which something has moved or is found to be otherwise. Brokers
        may tell of more in a pause: that waits for the next look.
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
        """Have a pair looked at when it has stood still for long."""
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
        # A group that went back, or a topic that was made again, has no rate.
        consumed = max(0, committed - before[0]) / seconds
        produced = max(0, end - before[1]) / seconds
        if consumed:
            pair.read_ms = now_ms
        if pair.recent is None or pair.longer is None or now_ms - pair.read_ms > STANDSTILL_MS:
            # What it did before it stood still says nothing of what it will do.
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

    # --- when the records were written that wait --------------------------------------------------

    def questions(self) -> dict[int, list[tuple[Pair, Place]]]:
        """Return places to ask each leader about, a bounded number.

        Only those that nobody has told yet: a group that stands still is asked about once.
        """
        asked: dict[int, list[tuple[Pair, Place]]] = {}
        for pair in list(self._undated):
            if any(len(places) >= MAX_ASKED for places in asked.values()):
                break
            # To the end: who finds no room this time comes first the next time.
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
        """Take over when records were written; a pair counts from its oldest one."""
        for (pair, (_topic, partition, following)), written in zip(asked, times, strict=False):
            # Producers may write -1, which is no time; a lag since 1969 would be loss ahead.
            if isinstance(written, int) and written > 0 and self._is_known(pair):
                pair.history.date(partition, following, written)
                # The next look weighs it, since whether loss is ahead depends on it.
                self._observed.moved_pairs.add(pair)


def lag_ms(pair: Pair, now_ms: int) -> int | None:
    """Return the age of the oldest record that waits; None where nobody has told it."""
    if not pair.lag:
        return None if pair.unknown else 0
    return max(0, now_ms - pair.written_ms) if pair.written_ms else None


def group_verdict(group: Group) -> Verdict:
    return worst(pair.verdict for pair in group.pairs.values())


def group_eta(group: Group) -> Eta | None:
    """Return when the slowest topic of a group has caught up; None where one never does."""
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
