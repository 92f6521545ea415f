"""Words the lag of groups for pages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from console import durations
from console.monitoring.tables import GroupRow, LagRow
from console.monitoring.verdicts import EVERY_RULE, REBALANCED_MS, WORDS, Verdict
from console.queries.reading import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A verdict for display: the CSS class gives colour and shape; then its word and meaning."""

    state: str  # the class: ok, warn, bad or stale
    word: str
    meaning: str


# Green is for verdicts that were seen to be true; what is not known is grey.
STATES: Final[Mapping[Verdict, str]] = MappingProxyType(
    {
        Verdict.OK: "ok",
        Verdict.CATCHING_UP: "ok",
        Verdict.NO_MEMBERS: "stale",
        Verdict.UNKNOWN: "stale",
        Verdict.FALLING_BEHIND: "warn",
        Verdict.UNCOMMITTED: "warn",
        Verdict.REWOUND: "warn",
        Verdict.STALLED: "bad",
        Verdict.STOPPED: "bad",
        Verdict.REBALANCING: "bad",
        Verdict.LOSS_AHEAD: "bad",
    }
)
# The first rule of each verdict stands for it where no rule is told.
MEANINGS: Final = {rule.verdict: rule.meaning for rule in reversed(EVERY_RULE)}
MARKS: Final[Mapping[Verdict, Mark]] = MappingProxyType(
    {
        verdict: Mark(state=STATES[verdict], word=WORDS[verdict], meaning=MEANINGS[verdict])
        for verdict in Verdict
    }
)
# By rule, which says why.
REASONS: Final[Mapping[str, Mark]] = MappingProxyType(
    {rule.key: replace(MARKS[rule.verdict], meaning=rule.meaning) for rule in EVERY_RULE}
)
# A group that starts rebalances about once for each of its first members.
STARTS: Final = 2
RECENT_MIN: Final = REBALANCED_MS // 60_000
NEVER: Final = "does not catch up"
KEEPS_UP: Final = "keeps up"
NOT_KNOWN: Final = "not known"
# A lag of less than two commits of a client that commits every 5 s is no backlog: it would be read,
# and the next records there, before any time to catch up has passed.
KEEPS_UP_S: Final = 10.0
# Where nothing is read there is nothing to predict.
WITHOUT_ETA: Final = frozenset(
    {Verdict.NO_MEMBERS, Verdict.STOPPED, Verdict.STALLED, Verdict.UNCOMMITTED}
)
# Only these may say that a group never catches up.
LATE: Final = frozenset({Verdict.FALLING_BEHIND, Verdict.LOSS_AHEAD})


def mark_of(row: LagRow) -> Mark:
    """Return the verdict of a row, with the rule that gave it."""
    mark = REASONS.get(row.rule)
    verdict = row.verdict_value
    return MARKS[verdict] if mark is None or mark.word != WORDS[verdict] else mark


def since_of(row: LagRow) -> datetime | None:
    """Return since when the verdict of a row is true; None if it is not known."""
    return moment(row.since_ms / 1000) if row.since_ms else None


def lag_seconds(row: LagRow, at_ms: int) -> float | None:
    """Return the age of the oldest unread record; None if it is unknown."""
    if not row.lag:
        return None if row.unknown or row.at_most else 0.0
    return max(0, at_ms - row.oldest_ms) / 1000 if row.oldest_ms else None


def lag_words(row: LagRow) -> str:
    """Return how many records wait, with what bounds the number where it is not known."""
    if row.at_most:
        most = row.lag + row.at_most
        return f"{row.lag:,} to {most:,}" if row.lag else f"up to {most:,}"
    return f"≥ {row.lag:,}" if row.unknown else f"{row.lag:,}"


def eta_words(row: LagRow, seconds: float | None) -> str:
    """Return when a group will have caught up, as a range; empty if there is no lag."""
    verdict = row.verdict_value
    if not row.lag or verdict in WITHOUT_ETA:
        return ""
    if verdict is Verdict.OK and seconds is not None and seconds < KEEPS_UP_S:
        return KEEPS_UP
    if verdict is Verdict.FALLING_BEHIND or (verdict in LATE and row.eta_low_s is None):
        return NEVER
    if row.eta_low_s is None or verdict is Verdict.UNKNOWN:
        return NOT_KNOWN
    if row.eta_high_s is None:
        return f"{durations.at_least(row.eta_low_s)} at best"
    return durations.between(row.eta_low_s, row.eta_high_s)


def owned_words(row: GroupRow) -> str:
    """Return what bounds the lag of partitions that are owned without a commit, if any are."""
    if not row.at_most:
        return ""
    rest = row.owned - row.uncommitted
    have = "has" if 1 in {rest, row.owned} else "have"
    partitions = "partition" if row.owned == 1 else "partitions"
    records = f"up to {row.at_most:,} record{'' if row.at_most == 1 else 's'}"
    return (
        f"{rest:,} of {row.owned:,} owned {partitions} {have} commits;"
        f" {row.uncommitted:,} never committed, {records} in"
        f" {'it' if row.uncommitted == 1 else 'them'}."
    )


def rebalance_words(row: GroupRow) -> str:
    """Return how often a group has rebalanced lately; empty if no more often than a start takes."""
    if row.recent_rebalances <= STARTS:
        return ""
    return f"It rebalanced {row.recent_rebalances:,} times in the last {RECENT_MIN} min."
