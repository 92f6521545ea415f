"""Rates how a consumer group keeps up, as one of a few verdicts, each by one named rule.

Pure: the time is an argument. The rules examine the commits of minutes and never a single number,
and they need a reader: of a group without one they only say that nothing reads it. The first rule
that matches gives the verdict.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

# Twenty-four commits of a client that commits every 5 s, the default of clients.
WINDOW_MS: Final = 120_000
# A group that commits rarely is silent for long between two commits; twice its longest recent pause
# exceeds any silence that it ever kept.
SILENCE_FACTOR: Final = 2
# How long a lag has to grow before it is falling behind, and how long a lag is watched before it
# counts as one that does not grow.
TREND_MS: Final = 300_000
# `history` compares minima of a minute and a half, so a rise began 45 to 90 s before it was seen to
# begin: with these, the verdict comes before TREND_MS are over. A burst may last as long as the
# shorter time; then it is not known what it is.
RISE_MS: Final = 200_000
BURST_MS: Final = 90_000
# Rebalances count for this long.
REBALANCED_MS: Final = 300_000
# A longer time to catch up is not a useful forecast.
MAX_ETA_S: Final = 30 * 86_400.0


class Verdict(Enum):
    """The state of a group, in order of severity."""

    OK = "ok"
    CATCHING_UP = "catching up"
    NO_MEMBERS = "no members"
    UNKNOWN = "unknown"
    FALLING_BEHIND = "falling behind"
    UNCOMMITTED = "never committed"
    REWOUND = "rewound"
    STALLED = "stalled"
    STOPPED = "stopped"
    # The cause of the ones before it: a group that rebalances does not read.
    REBALANCING = "rebalancing"
    LOSS_AHEAD = "data loss ahead"


SEVERITY: Final = {verdict: place for place, verdict in enumerate(Verdict)}
# Verdicts that need attention; the others are fine, or say that too little is known.
ALARMS: Final = frozenset(
    verdict for verdict in Verdict if SEVERITY[verdict] >= SEVERITY[Verdict.FALLING_BEHIND]
)
WORDS: Final[Mapping[Verdict, str]] = {
    Verdict.OK: "OK",
    Verdict.CATCHING_UP: "Catching up",
    Verdict.NO_MEMBERS: "No members",
    Verdict.UNKNOWN: "Unknown",
    Verdict.FALLING_BEHIND: "Falling behind",
    Verdict.UNCOMMITTED: "Never committed",
    Verdict.REWOUND: "Rewound",
    Verdict.STALLED: "Stalled",
    Verdict.STOPPED: "Stopped",
    Verdict.REBALANCING: "Rebalancing",
    Verdict.LOSS_AHEAD: "Data loss ahead",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Whether something reads a group: members, or a client that commits without joining."""

    is_there: bool = True
    came_ms: int = 0  # when the first member joined, or such a client came; 0 if that was not seen
    # When the last member left, or such a client committed last; 0 if that was not seen.
    gone_ms: int = 0


# Not frozen, as it would have to be: tens of thousands are made each second on a large cluster.
@dataclass(slots=True, kw_only=True, eq=False)
class Trend:
    """How the lag moves: minima of successive windows, so that batched commits do not count."""

    watched_since_ms: int  # since it reads from where it is now
    grows_since_ms: int
    growth: int  # since then
    fall: int  # from the window before to the last one
    # The records of ten seconds, a difference that commits and looks at different times make.
    slack: int
    # It has read all that was there when the window before the present one began.
    is_read_up: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Evidence:
    """A summary of one group's commits in one partition; times are wall-clock milliseconds."""

    lag: int | None  # None if the end of the partition is unknown
    # When the lag was zero last, or the partition was first seen.
    behind_since_ms: int
    first_seen_ms: int
    # The offset before a reader went back to an earlier one; 0 if none did, or it has recovered.
    rewound_from: int
    commit_ms: int
    # The longest recent pause between two commits, counting only time with unread records.
    pause_ms: int
    progress_ms: int  # when the committed offset last grew
    trend: Trend
    reader: Reader = Reader()
    is_loss_ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """Partitions that members of a group own without having committed any offset there."""

    partitions: int
    at_most: int  # records in them
    arrived: int  # since the first of them was seen without a commit
    # When such a record arrived first; 0 if none did.
    arrived_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[T]):
    key: str
    verdict: Verdict
    holds: Callable[[T, int], bool]
    meaning: str  # the rule in words
    # The start of the verdict: words, and a moment to follow them.
    since: str = ""
    since_ms: Callable[[T], int] = lambda _evidence: 0


def silence_allowed_ms(evidence: Evidence) -> int:
    return max(WINDOW_MS, SILENCE_FACTOR * evidence.pause_ms)


def is_silent(evidence: Evidence, moment_ms: int, now_ms: int) -> bool:
    """Tell whether a moment is too long ago; silence only counts while records wait."""
    since_ms = max(moment_ms, evidence.behind_since_ms, evidence.reader.came_ms)
    return now_ms - since_ms > silence_allowed_ms(evidence)


def has_grown(evidence: Evidence, now_ms: int, for_ms: int) -> bool:
    """Tell whether the lag has grown for so long, by more than commits and looks vary."""
    trend = evidence.trend
    return now_ms - trend.grows_since_ms >= for_ms and trend.growth > trend.slack


def was_at_end(evidence: Evidence, now_ms: int) -> bool:
    """Tell whether the lag was seen to be zero within the last window."""
    is_seen = evidence.behind_since_ms > evidence.first_seen_ms
    return is_seen and now_ms - evidence.behind_since_ms < WINDOW_MS


WINDOW_WORDS: Final = f"{WINDOW_MS // 60_000} min"
TREND_WORDS: Final = f"{TREND_MS // 60_000} min"
CAUGHT_UP: Final[Rule[Evidence]] = Rule(
    key="caught up",
    verdict=Verdict.OK,
    holds=lambda e, _now: e.lag == 0,
    meaning="No record waits.",
)
AT_END: Final[Rule[Evidence]] = Rule(
    key="at its end",
    verdict=Verdict.OK,
    holds=was_at_end,
    meaning=f"The lag was zero within the last {WINDOW_WORDS}.",
)
# What is true of partitions that are not judged one by one, too.
KEEPS_UP: Final[Rule[Evidence]] = Rule(
    key="keeps up",
    verdict=Verdict.OK,
    holds=lambda e, _now: e.trend.is_read_up,
    meaning="It has read everything but what arrived in the last minutes.",
)
VACANT: Final[Rule[Evidence]] = Rule(
    key="no members",
    verdict=Verdict.NO_MEMBERS,
    holds=lambda e, _now: not e.reader.is_there,
    meaning="The group has no members: nothing reads for it.",
    since="no member since",
    since_ms=lambda e: e.reader.gone_ms,
)
SILENT: Final[Rule[Evidence]] = Rule(
    key="no commits",
    verdict=Verdict.STOPPED,
    holds=lambda e, now: is_silent(e, e.commit_ms, now),
    meaning=f"Records wait, and the group commits no more: no commit has come for {WINDOW_WORDS}"
    " and for twice its longest recent pause.",
    since="no commit since",
    since_ms=lambda e: e.commit_ms,
)
PARTITION_RULES: Final[tuple[Rule[Evidence], ...]] = (
    Rule(
        key="no end",
        verdict=Verdict.UNKNOWN,
        holds=lambda e, _now: e.lag is None,
        meaning="No broker reports the end of the partition, so its lag is unknown.",
    ),
    Rule(
        key="loss ahead",
        verdict=Verdict.LOSS_AHEAD,
        holds=lambda e, _now: e.is_loss_ahead,
        meaning="Retention deletes unread records before the group reaches them.",
        since="behind since",
        since_ms=lambda e: e.behind_since_ms,
    ),
    Rule(
        key="unread",
        verdict=Verdict.STOPPED,
        holds=lambda e, now: (
            not e.reader.is_there
            and bool(e.lag)
            and is_silent(e, e.reader.gone_ms or e.commit_ms, now)
        ),
        meaning="Records wait, and the group has no members: nothing reads them.",
        since="unread since",
        since_ms=lambda e: max(e.reader.gone_ms, e.behind_since_ms),
    ),
    VACANT,
    CAUGHT_UP,
    AT_END,
    Rule(
        key="rewound",
        verdict=Verdict.REWOUND,
        holds=lambda e, _now: e.rewound_from > 0,
        meaning="A member set the committed offset back, and it has not reached the former offset.",
        since="behind since",
        since_ms=lambda e: e.behind_since_ms,
    ),
    SILENT,
    Rule(
        key="no progress",
        verdict=Verdict.STALLED,
        holds=lambda e, now: is_silent(e, e.progress_ms, now),
        meaning="Commits come, but the offset does not grow while records wait.",
        since="no progress since",
        since_ms=lambda e: e.progress_ms,
    ),
    Rule(
        key="grows",
        verdict=Verdict.FALLING_BEHIND,
        holds=lambda e, now: has_grown(e, now, RISE_MS),
        meaning=f"The lag has grown for some {TREND_WORDS}: less is read than arrives.",
        since="the lag grows since",
        since_ms=lambda e: e.trend.grows_since_ms,
    ),
    Rule(
        key="begins to grow",
        verdict=Verdict.UNKNOWN,
        holds=lambda e, now: has_grown(e, now, BURST_MS),
        meaning=f"The lag has grown for less than {TREND_WORDS} so far: whether it is a burst is"
        " not known yet.",
        since="the lag grows since",
        since_ms=lambda e: e.trend.grows_since_ms,
    ),
    KEEPS_UP,
    Rule(
        key="falls",
        verdict=Verdict.CATCHING_UP,
        holds=lambda e, _now: e.trend.fall > e.trend.slack,
        meaning="Records wait, and the lag falls from minute to minute.",
        since="behind since",
        since_ms=lambda e: e.behind_since_ms,
    ),
    Rule(
        key="watched too short",
        verdict=Verdict.UNKNOWN,
        holds=lambda e, now: now - e.trend.watched_since_ms < TREND_MS,
        meaning=f"Records wait, and its reading has been watched for less than {TREND_WORDS}:"
        " whether the lag grows is not known yet.",
        since="watched since",
        since_ms=lambda e: e.trend.watched_since_ms,
    ),
    Rule(
        key="steady",
        verdict=Verdict.OK,
        holds=lambda _e, _now: True,
        meaning="Records wait, and the lag does not grow.",
    ),
)
OWNED_RULES: Final[tuple[Rule[Owned], ...]] = (
    Rule(
        key="never committed",
        verdict=Verdict.UNCOMMITTED,
        holds=lambda o, now: o.arrived_ms > 0 and now - o.arrived_ms >= WINDOW_MS,
        meaning="Members own partitions in which the group has never committed, while records"
        " arrive there: how much of them is read is not known.",
        since="records arrive without a commit since",
        since_ms=lambda o: o.arrived_ms,
    ),
    Rule(
        key="no commit yet",
        verdict=Verdict.UNKNOWN,
        holds=lambda o, _now: o.at_most > 0,
        meaning="Members own partitions in which the group has not committed yet: how much of them"
        " is read is not known.",
    ),
)
REBALANCES: Final[Rule[None]] = Rule(
    key="rebalances",
    verdict=Verdict.REBALANCING,
    holds=lambda _nothing, _now: True,
    meaning="The group rebalances again and again: members join and leave, and reading pauses each"
    " time.",
    since="rebalances since",
)
UNASSIGNED: Final[Rule[None]] = Rule(
    key="unassigned",
    verdict=Verdict.UNKNOWN,
    holds=lambda _nothing, _now: True,
    meaning="The group has members, but they own no partition, and no offset is committed.",
)
EMPTY: Final[Rule[None]] = Rule(
    key="empty",
    verdict=Verdict.NO_MEMBERS,
    holds=lambda _nothing, _now: True,
    meaning="The group has no members, and no offset is committed.",
)
EVERY_RULE: Final[tuple[Rule[Any], ...]] = (
    *PARTITION_RULES,
    *OWNED_RULES,
    REBALANCES,
    UNASSIGNED,
    EMPTY,
)
# By key, as rows of tables name their rule.
MEANINGS: Final = {rule.key: rule.meaning for rule in EVERY_RULE}
SINCE: Final = {rule.key: rule.since for rule in EVERY_RULE}


def judge(evidence: Evidence, now_ms: int) -> Rule[Evidence]:
    """Return the matching rule, with its verdict and the reason."""
    return next(rule for rule in PARTITION_RULES if rule.holds(evidence, now_ms))


def judge_owned(owned: Owned, now_ms: int) -> Rule[Owned] | None:
    """Return the rule of partitions without a commit; None if there is nothing to read in them."""
    return next((rule for rule in OWNED_RULES if rule.holds(owned, now_ms)), None)


@dataclass(frozen=True, slots=True)
class Rates:
    """Records per second that a group reads and that producers write, over one time span."""

    consumed: float
    produced: float

    def moved(self, consumed: float, produced: float, share: float) -> "Rates":
        """Return these rates moved towards a newer measurement that weighs `share`."""
        return Rates(
            self.consumed + share * (consumed - self.consumed),
            self.produced + share * (produced - self.produced),
        )


# How much rates vary, and how far commits lag behind reading. For simulated groups whose rates vary
# by up to a third, ranges with these margins hold in nine cases of ten.
RATE_MARGIN: Final = 0.35
COMMIT_SLACK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Eta:
    """Seconds until the lag is zero. `high_s` is None if one of the rates never gets there."""

    low_s: float
    high_s: float | None


def eta(lag: int, recent: Rates, longer: Rates) -> Eta | None:
    """Return when a group catches up, by its recent and its longer-term rate; None for never."""
    if lag == 0:
        return Eta(0.0, 0.0)
    seconds = [
        lag / gained if (gained := rates.consumed - rates.produced) > 0 else math.inf
        for rates in (recent, longer)
    ]
    low, high = min(seconds), max(seconds)
    if low > MAX_ETA_S:
        return None
    low_s = max(0.0, low * (1 - RATE_MARGIN) - COMMIT_SLACK_S)
    high_s = high * (1 + RATE_MARGIN) + COMMIT_SLACK_S
    return Eta(low_s, high_s if high <= MAX_ETA_S else None)


def is_loss_ahead(
    eta_s: Eta | None, *, lag: int, lag_ms: int | None, retention_ms: int | None
) -> bool:
    """Tell whether retention deletes the next unread record before the group catches up.

    False for unknown ages and unlimited retention.
    """
    if not lag or lag_ms is None or retention_ms is None or retention_ms < 0:
        return False
    left_ms = retention_ms - lag_ms
    if eta_s is None or eta_s.high_s is None:
        # It may never catch up, so test whether the loss is near. Half of the retention at most: a
        # burst in a topic that keeps records for minutes is no loss.
        return left_ms < min(max(10 * WINDOW_MS, retention_ms // 10), retention_ms // 2)
    # A high end of days may be one moment without a commit: it alone is no loss while the record is
    # young.
    return left_ms < eta_s.high_s * 1000 and left_ms < retention_ms // 2
