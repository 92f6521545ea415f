"""Fetches the last minutes of all rows of a list at once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final
from urllib.parse import quote_plus

from console.queries import live

# Of the names in one question, as they are sent: the collector takes a head of 16 KiB. Those of an
# ordinary page take a third of it.
MAX_NAMES_BYTES: Final = 12_000
# Questions for one page; rows beyond them have longer names than a picture is worth.
MAX_QUESTIONS: Final = 3

# A change that a picture twenty pixels high shows as two of them.
STEADY_SHARE: Final = 0.1

Samples = Sequence[float | None]


def recent(kind: str, names: Sequence[str]) -> Mapping[str, Samples]:
    """Return the samples of topics or groups by name; those that nobody tells are left out."""
    found: dict[str, Samples] = {}
    try:
        for asked in islice(_questions(names), MAX_QUESTIONS):
            found |= live.ask("/recent", kind=kind, names=json.dumps(asked))["samples"]
    except live.CollectorFailed:
        # The page has said how old its tables are; a picture that is missing adds nothing to it.
        return found
    return found


def trend(samples: Samples) -> str:
    """Return in a word what a picture of samples shows, for readers who do not see it."""
    known = [sample for sample in samples if sample is not None]
    if len(known) < 2:
        return ""
    change = known[-1] - known[0]
    if abs(change) <= STEADY_SHARE * max(known):
        return "steady"
    return "rising" if change > 0 else "falling"


def _questions(names: Sequence[str]) -> Iterator[list[str]]:
    """Divide names so that each question is short enough; one that is too long by itself goes."""
    asked: list[str] = []
    size = 0
    for name in names:
        needed = len(quote_plus(json.dumps(name))) + len(quote_plus(", "))
        if needed > MAX_NAMES_BYTES:
            continue
        if size + needed > MAX_NAMES_BYTES:
            yield asked
            asked, size = [], 0
        asked.append(name)
        size += needed
    if asked:
        yield asked
