"""Words what is fine where nothing needs attention, kind by kind: what a user may not see is named.

Pure: of what the user may see, and of the groups' verdicts.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from console.monitoring.verdicts import SEVERITY, WORDS, Verdict
from gateway.access.grants import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a user may see of a cluster."""

    has_brokers: bool
    topics: Names
    groups: Names
    connectors: Names

    @property
    def is_nothing(self) -> bool:
        return not (self.has_brokers or self.topics or self.groups or self.connectors)


def fine_words(seen: Seen, verdicts: Iterable[Verdict]) -> str:
    """Return a sentence for each kind; `verdicts` are those of the groups that the user may see."""
    brokers = "Every broker serves, and no disk is nearly full."
    return " ".join(
        (
            brokers if seen.has_brokers else "Brokers: you may see none.",
            _of(seen.topics, "Topics", "Every partition has a leader."),
            _of(seen.groups, "Groups", _groups(Counter(verdicts))),
            _of(seen.connectors, "Connectors", "No connector has failed."),
        )
    )


def _of(names: Names, kind: str, fine: str) -> str:
    if names.is_all:
        return fine
    return (
        f"{kind} that you may see: {fine[0].lower()}{fine[1:]}"
        if names
        else (f"{kind}: you may see none.")
    )


def _groups(counts: Counter[Verdict]) -> str:
    if not counts:
        return "There are no groups."
    if counts.keys() == {Verdict.OK}:
        return "Every group keeps up."
    parts = [
        f"{counts[verdict]:,} {WORDS[verdict] if verdict is Verdict.OK else WORDS[verdict].lower()}"
        for verdict in sorted(counts, key=SEVERITY.__getitem__)
    ]
    return f"No group needs attention: {', '.join(parts)}."
