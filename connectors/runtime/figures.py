"""Counts the work of a task: per slice while it runs, and in total since its creation.

Pure. The names are those that pages and the REST interface show.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from connectors.sdk.records import JobBatch

if TYPE_CHECKING:
    from connectors.runtime.causes import Cause
    from connectors.runtime.condition import Retrying

# Read from the source or the topics; written to the topics or handed to the sink.
READ: Final = "records_read"
WRITTEN: Final = "records_written"
# Dropped by a transform, and skipped because of an error.
FILTERED: Final = "records_filtered"
SKIPPED: Final = "records_skipped"
# Those of the skipped ones that an error kept from their target.
LOST: Final = "records_lost"
FAILED: Final = "errors"
DEAD: Final = "dead_letters"
RETRIED: Final = "retries"
COMMITTED: Final = "commits"
NAMES: Final = (READ, WRITTEN, FILTERED, SKIPPED, LOST, FAILED, DEAD, RETRIED, COMMITTED)
# Rates per second since the task last reported.
RATES: Final = {READ: "read_per_s", WRITTEN: "written_per_s"}
# Of a job: its last batch, as an object.
BATCH: Final = "last_batch"
# Causes of losses that one slice counts: some bad programs make a new one for each record.
MAX_CAUSES: Final = 100
# The shortest time for a rate; the last report of a slice keeps its former rate if the time since
# the report before is shorter.
MIN_SECONDS: Final = 0.1
MIN_REST_SECONDS: Final = 1.0


class Figures:
    """The counts of one slice, its topics, and what fails; another thread may read them."""

    def __init__(self) -> None:
        # The failures in a row up to now, and whether the other side has ever answered.
        self.retrying: Retrying | None = None
        self.has_worked = False
        self._counts = dict.fromkeys(NAMES, 0)
        self._causes: dict[Cause, int] = {}
        # Not a set: another thread cannot copy a set that grows.
        self._topics: dict[str, None] = {}
        self._batch: JobBatch | None = None

    def add(self, name: str, count: int = 1) -> None:
        self._counts[name] += count

    def lose(self, cause: "Cause", *, otherwise: "Cause") -> None:
        """Count a lost record by its cause; by the other one if there are many causes."""
        key = cause if cause in self._causes or len(self._causes) < MAX_CAUSES else otherwise
        self._causes[key] = self._causes.get(key, 0) + 1
        self.add(LOST)

    def causes(self) -> "Mapping[Cause, int]":
        return self._causes.copy()

    def use(self, topic: str) -> None:
        self._topics[topic] = None

    def note(self, batch: JobBatch) -> None:
        self._batch = batch

    def batch(self) -> JobBatch | None:
        """Return the last batch of the slice; None if there was none."""
        return self._batch

    def counts(self) -> Mapping[str, int]:
        return dict(self._counts)

    def topics(self) -> frozenset[str]:
        return frozenset(list(self._topics))


class Account:
    """The figures of a running task: those before its slice plus those of the slice."""

    def __init__(self, before: Mapping[str, Any], began_s: float) -> None:
        self._before = before
        self._rates = {rate: before.get(rate, 0.0) for rate in RATES.values()}
        self._batch = {BATCH: before[BATCH]} if BATCH in before else {}
        self._told: Mapping[str, int] = {}
        self._told_at_s = began_s
        self._shortest_s = MIN_SECONDS

    def after(
        self, counts: Mapping[str, int], now_s: float, batch: JobBatch | None = None
    ) -> dict[str, Any]:
        """Return the totals including the slice so far, and its last batch."""
        seconds = now_s - self._told_at_s
        if seconds >= self._shortest_s:
            for name, rate in RATES.items():
                grown = counts.get(name, 0) - self._told.get(name, 0)
                self._rates[rate] = round(grown / seconds, 1)
            self._told, self._told_at_s = dict(counts), now_s
            self._shortest_s = MIN_REST_SECONDS
        sums = {name: int(self._before.get(name, 0)) + counts.get(name, 0) for name in NAMES}
        if batch is not None:
            self._batch = {BATCH: asdict(batch)}
        return {**sums, **self._rates, **self._batch}
