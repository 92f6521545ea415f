"""Words the lag of groups for pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from console import durations
from console.monitoring.tables import LagRow
from console.monitoring.verdicts import RULES, WINDOW_WORDS, WORDS, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A verdict for display: the CSS class gives colour and shape; then its word and meaning."""

    state: str  # the class: ok, warn, bad or stale
    word: str
    meaning: str


STATES: Final[Mapping[Verdict, str]] = MappingProxyType(
    {
        Verdict.OK: "ok",
        Verdict.UNKNOWN: "stale",
        Verdict.SLOW: "warn",
        Verdict.REWOUND: "warn",
        Verdict.STALLED: "bad",
        Verdict.STOPPED: "bad",
        Verdict.LOSS_AHEAD: "bad",
    }
)
# Three rules give OK; without the evidence, name what they have in common.
OK_MEANING: Final = (
    f"The lag was zero in the last {WINDOW_WORDS}, has been watched for less, or falls from time"
    " to time."
)
MEANINGS: Final = {rule.verdict: rule.meaning for rule in RULES} | {Verdict.OK: OK_MEANING}
MARKS: Final[Mapping[Verdict, Mark]] = MappingProxyType(
    {
        verdict: Mark(state=STATES[verdict], word=WORDS[verdict], meaning=MEANINGS[verdict])
        for verdict in Verdict
    }
)
NEVER: Final = "does not catch up"
KEEPS_UP: Final = "keeps up"
# A lag of less than two commits of a client that commits every 5 s is no backlog: it would be read,
# and the next records there, before any time to catch up has passed.
KEEPS_UP_S: Final = 10.0


def lag_seconds(row: LagRow, at_ms: int) -> float | None:
    """Return the age of the oldest unread record; None if it is unknown."""
    if not row.lag:
        return None if row.unknown else 0.0
    return max(0, at_ms - row.oldest_ms) / 1000 if row.oldest_ms else None


def eta_words(row: LagRow, seconds: float | None) -> str:
    """Return when a group will have caught up, as a range; empty if there is no lag."""
    if not row.lag:
        return ""
    if row.verdict_value is Verdict.OK and seconds is not None and seconds < KEEPS_UP_S:
        return KEEPS_UP
    if row.eta_low_s is None:
        return NEVER
    if row.eta_high_s is None:
        return f"{durations.at_least(row.eta_low_s)} at best"
    return durations.between(row.eta_low_s, row.eta_high_s)
