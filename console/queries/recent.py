"""Fetches the last minutes of all rows of a list at once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final
from urllib.parse import quote_plus

from console.queries import live

# Bytes of the encoded names in one request: the collector takes a head of 16 KiB. The names of an
# ordinary page take a third of it.
MAX_NAMES_BYTES: Final = 12_000
# Requests for one page; further rows, with very long names, get no picture.
MAX_QUESTIONS: Final = 3

# The smallest change that is visible in a picture twenty pixels high.
STEADY_SHARE: Final = 0.1

Samples = Sequence[float | None]


def recent(kind: str, names: Sequence[str]) -> Mapping[str, Samples]:
    """Return the samples of topics or groups by name; unknown ones are left out."""
    found: dict[str, Samples] = {}
    try:
        for asked in islice(_questions(names), MAX_QUESTIONS):
            found |= live.ask("/recent", kind=kind, names=json.dumps(asked))["samples"]
    except live.CollectorFailed:
        # The page already shows how old its tables are; a missing picture adds nothing.
        return found
    return found


def trend(samples: Samples) -> str:
    """Return in a word what a sparkline shows, for readers who do not see it."""
    known = [sample for sample in samples if sample is not None]
    if len(known) < 2:
        return ""
    change = known[-1] - known[0]
    if abs(change) <= STEADY_SHARE * max(known):
        return "steady"
    return "rising" if change > 0 else "falling"


def _questions(names: Sequence[str]) -> Iterator[list[str]]:
    """Divide names into requests of limited length; a name that is too long alone is skipped."""
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
