"""What a task has done, as counts: of a slice while it runs, and of the task since it was made.

Pure. The names are those that pages and the REST interface show.
"""

from collections.abc import Mapping
from typing import Any, Final

# Read from the source or the topics; written to the topics or handed to the sink.
READ: Final = "records_read"
WRITTEN: Final = "records_written"
# Left out by a transform, and left out because of an error.
FILTERED: Final = "records_filtered"
SKIPPED: Final = "records_skipped"
FAILED: Final = "errors"
DEAD: Final = "dead_letters"
RETRIED: Final = "retries"
COMMITTED: Final = "commits"
NAMES: Final = (READ, WRITTEN, FILTERED, SKIPPED, FAILED, DEAD, RETRIED, COMMITTED)
# Rates of the last slice, per second.
RATES: Final = {READ: "read_per_s", WRITTEN: "written_per_s"}
# A slice that was shorter says nothing about a rate.
MIN_SECONDS: Final = 0.1


class Figures:
    """The counts of one slice."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(NAMES, 0)

    def add(self, name: str, count: int = 1) -> None:
        self._counts[name] += count

    def counts(self) -> Mapping[str, int]:
        return dict(self._counts)


def total(before: Mapping[str, Any], of_slice: Mapping[str, int], seconds: float) -> dict[str, Any]:
    """Return the figures of a task after one more slice, which took so many seconds."""
    sums: dict[str, Any] = {
        name: int(before.get(name, 0)) + of_slice.get(name, 0) for name in NAMES
    }
    for name, rate in RATES.items():
        is_told = seconds >= MIN_SECONDS
        sums[rate] = round(of_slice.get(name, 0) / seconds, 1) if is_told else before.get(rate, 0.0)
    return sums
