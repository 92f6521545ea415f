"""Rates how a consumer group keeps up with a partition, as one of a few verdicts.

Pure: the time is an argument. The rules are adapted from Burrow: they examine the commits of a
window and never a single number. The first rule that matches gives the verdict.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

# Twenty-four commits of a client that commits every 5 s, the default of clients.
WINDOW_MS: Final = 120_000
# A group that commits rarely is silent for long between two commits; twice its longest recent pause
# exceeds any silence that it ever kept.
SILENCE_FACTOR: Final = 2
# A longer time to catch up is not a useful forecast.
MAX_ETA_S: Final = 30 * 86_400.0


class Verdict(Enum):
    """The state of a group, in order of severity."""

    OK = "ok"
    UNKNOWN = "unknown"
    SLOW = "slow"
    REWOUND = "rewound"
    STALLED = "stalled"
    STOPPED = "stopped"
    LOSS_AHEAD = "data loss ahead"


SEVERITY: Final = {verdict: place for place, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A summary of one group's commits in one partition; times are wall-clock milliseconds."""

    lag: int | None  # None if the end of the partition is unknown
    # When the lag was zero last, or the partition was first seen.
    behind_since_ms: int
    # The offset before a reset to an earlier one; 0 if there was none, or it has recovered.
    rewound_from: int
    commit_ms: int
    # The longest recent pause between two commits, counting only time with unread records.
    pause_ms: int
    progress_ms: int  # when the committed offset last grew
    fall_ms: int  # when a commit last found less lag than the one before
    is_loss_ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    verdict: Verdict
    holds: Callable[[Evidence, int], bool]
    word: str  # as shown on a page
    meaning: str  # the rule in words


def silence_allowed_ms(evidence: Evidence) -> int:
    return max(WINDOW_MS, SILENCE_FACTOR * evidence.pause_ms)


def is_silent(evidence: Evidence, moment_ms: int, now_ms: int) -> bool:
    """Tell whether a moment is too long ago; silence only counts while records wait."""
    since_ms = max(moment_ms, evidence.behind_since_ms)
    return now_ms - since_ms > silence_allowed_ms(evidence)


WINDOW_WORDS: Final = f"{WINDOW_MS // 60_000} min"
RULES: Final = (
    Rule(
        verdict=Verdict.UNKNOWN,
        holds=lambda e, _now: e.lag is None,
        word="Unknown",
        meaning="No broker tells where the partition ends, so the lag is not known.",
    ),
    Rule(
        verdict=Verdict.LOSS_AHEAD,
        holds=lambda e, _now: e.is_loss_ahead,
        word="Data loss ahead",
        meaning="Retention deletes unread records before the group reaches them.",
    ),
    Rule(
        verdict=Verdict.OK,
        holds=lambda e, now: not e.lag or now - e.behind_since_ms < WINDOW_MS,
        word="OK",
        meaning=f"The lag was zero in the last {WINDOW_WORDS}, or has been watched for less.",
    ),
    Rule(
        verdict=Verdict.STOPPED,
        holds=lambda e, now: is_silent(e, e.commit_ms, now),
        word="Stopped",
        meaning=f"Records wait, and no commit has come for {WINDOW_WORDS} or for twice the group's"
        " longest recent pause in which records waited, whichever is longer.",
    ),
    Rule(
        verdict=Verdict.REWOUND,
        holds=lambda e, _now: e.rewound_from > 0,
        word="Rewound",
        meaning="The committed offset went back and has not reached its old place again.",
    ),
    Rule(
        verdict=Verdict.STALLED,
        holds=lambda e, now: is_silent(e, e.progress_ms, now),
        word="Stalled",
        meaning="Commits come, but the offset does not grow while records wait.",
    ),
    Rule(
        verdict=Verdict.SLOW,
        holds=lambda e, now: is_silent(e, e.fall_ms, now),
        word="Slow",
        meaning="The offset grows, but the lag never falls.",
    ),
    Rule(
        verdict=Verdict.OK,
        holds=lambda _e, _now: True,
        word="OK",
        meaning="Records wait, and the lag falls from time to time.",
    ),
)
WORDS: Final = {rule.verdict: rule.word for rule in RULES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """The start of a verdict: words, and a moment to follow them; 0 if none is known."""

    words: str
    moment: Callable[[Evidence], int]


BEHIND: Final = Since(words="behind since", moment=lambda e: e.behind_since_ms)
_NEVER: Final = Since(words="", moment=lambda _e: 0)
SINCE: Final = {
    Verdict.OK: _NEVER,
    Verdict.UNKNOWN: _NEVER,
    Verdict.SLOW: Since(words="the lag has not fallen since", moment=lambda e: e.fall_ms),
    Verdict.REWOUND: BEHIND,
    Verdict.STALLED: Since(words="no progress since", moment=lambda e: e.progress_ms),
    Verdict.STOPPED: Since(words="no commit since", moment=lambda e: e.commit_ms),
    Verdict.LOSS_AHEAD: BEHIND,
}


def judge(evidence: Evidence, now_ms: int) -> Rule:
    """Return the matching rule, with its verdict and the reason."""
    return next(rule for rule in RULES if rule.holds(evidence, now_ms))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of the verdicts of parts; OK if there are none."""
    return max(verdicts, key=SEVERITY.__getitem__, default=Verdict.OK)


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
        # It may never catch up, so test whether the loss is near, within one window of work.
        return left_ms < max(10 * WINDOW_MS, retention_ms // 10)
    return left_ms < eta_s.high_s * 1000
