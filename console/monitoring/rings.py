"""Holds the current block of samples in memory, as one packed column per metric and moment.

Pure. A column has one number per series of a kind, so taking a sample is one copy of an array, for
any number of series. A full block is written to the file in portions while the next one fills.
"""

import math
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

STEP_S: Final = 10
# Five minutes: the series that a killed collector loses, and what is kept in memory.
BLOCK_STEPS: Final = 30
BLOCK_S: Final = STEP_S * BLOCK_STEPS
# Ten minutes for each partition.
PARTITION_STEPS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of series and its metrics, in the order of the rows of the file.

    New metrics are appended to the row of a kind, never inserted: old rows stay readable.
    """

    name: str
    metrics: tuple[str, ...]


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            name="cluster",
            metrics=("bytes_in", "bytes_out", "requests", "connections", "log_bytes", "lag"),
        ),
        Kind(
            name="broker",
            metrics=(
                *("bytes_in", "bytes_out", "requests", "connections", "log_bytes"),
                *("memory_bytes", "disk_free_bytes", "loop_delay_p99_ms"),
            ),
        ),
        Kind(name="topic", metrics=("records", "size_bytes", "bytes_in", "bytes_out")),
        Kind(name="group", metrics=("lag", "lag_ms")),
        # Group and topic.
        Kind(name="pair", metrics=("lag", "lag_ms")),
    )
}

# The name of a series within its kind: group and topic of a pair, one name for the others.
Name = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The samples of one series over one block."""

    kind: str
    name: Name
    start_s: int
    metrics: tuple[list[float], ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """The values of all series of a kind in one sample. Immutable."""

    names: tuple[Name, ...]
    # By metric; a column is as long as there were series.
    columns: tuple["array[float]", ...]


class Ring:
    """All series of one kind. Not thread-safe."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.slots: dict[Name, int] = {}
        self.block_s = 0  # the start of the current block
        self._live = tuple(array("f") for _ in kind.metrics)
        # By the moment's index in the block.
        self._columns: dict[int, tuple[array[float], ...]] = {}
        self._seen: set[Name] = set()

    def set(self, name: Name, values: Sequence[float]) -> None:
        """Set the values of a series for the next sample."""
        slot = self.slots.get(name)
        if slot is None:
            slot = self.slots[name] = len(self.slots)
            for column in self._live:
                column.append(math.nan)
        for column, value in zip(self._live, values, strict=True):
            column[slot] = value
        self._seen.add(name)

    def sample(self, at_s: int) -> None:
        """Sample all series; a series that was not set since the last sample is missing."""
        if len(self._seen) != len(self.slots):
            for name, slot in self.slots.items():
                if name not in self._seen:
                    for column in self._live:
                        column[slot] = math.nan
        self._seen.clear()
        self._columns[(at_s - self.block_s) // STEP_S] = tuple(
            array("f", column) for column in self._live
        )

    def recent(self, name: Name, metric: int) -> list[float]:
        """Return the samples of the current block, including missing ones."""
        slot = self.slots.get(name)
        if slot is None or not self._columns:
            return []
        return self._of(slot, metric, max(self._columns) + 1)

    def newest(self, metric: int) -> Iterator[tuple[Name, float]]:
        """Return every series with its present value; missing ones are left out."""
        column = self._live[metric]
        return (
            (name, column[slot])
            for name, slot in self.slots.items()
            if not math.isnan(column[slot])
        )

    def moment(self) -> "Moment":
        """Return all values of the newest sample; none if the block has no sample yet."""
        columns = self._columns[max(self._columns)] if self._columns else ()
        return Moment(tuple(self.slots), columns)

    def finish(self) -> "FullBlock":
        """End the block, and keep only the series that have a value now."""
        full = FullBlock(self.kind, self.block_s, dict(self.slots), self._columns)
        self._columns = {}
        live = [name for name, slot in self.slots.items() if not math.isnan(self._live[0][slot])]
        kept = [tuple(column[self.slots[name]] for column in self._live) for name in live]
        self.slots = {name: slot for slot, name in enumerate(live)}
        self._live = tuple(array("f", values) for values in zip(*kept, strict=True)) or tuple(
            array("f") for _ in self.kind.metrics
        )
        return full

    def _of(self, slot: int, metric: int, number: int) -> list[float]:
        return samples_of(self._columns, slot, metric, number)


class FullBlock:
    """A block that has ended and waits to be written."""

    def __init__(
        self,
        kind: Kind,
        start_s: int,
        slots: dict[Name, int],
        columns: dict[int, tuple["array[float]", ...]],
    ) -> None:
        self.kind = kind
        self.start_s = start_s
        self.slots = slots
        # By metric, then by moment; each column is as long as there are series.
        self._lanes = tuple(
            lane_of(columns, metric, len(slots)) for metric in range(len(kind.metrics))
        )

    def series(self) -> Iterator[Finished]:
        for name in self.slots:
            yield Finished(self.kind.name, name, self.start_s, self.samples(name))

    def samples(self, name: Name) -> tuple[list[float], ...]:
        slot = self.slots[name]
        return tuple([column[slot] for column in lane] for lane in self._lanes)


def lane_of(
    columns: dict[int, tuple["array[float]", ...]], metric: int, series: int
) -> list["array[float]"]:
    """Return one metric's column of each moment; NaN for series that were new or not sampled.

    Built once for fifty thousand series: a lookup of each sample would be far slower.
    """
    missing = array("f", [math.nan]) * series
    lane = []
    for moment in range(max(columns, default=-1) + 1):
        row = columns.get(moment)
        column = missing if row is None else row[metric]
        lane.append(column if len(column) == series else column + missing[len(column) :])
    return lane


def samples_of(
    columns: dict[int, tuple["array[float]", ...]], slot: int, metric: int, number: int
) -> list[float]:
    found = []
    for moment in range(number):
        column = columns.get(moment)
        # A series that was added later is missing in earlier columns.
        there = column is not None and slot < len(column[metric])
        found.append(column[metric][slot] if column is not None and there else math.nan)
    return found


class PartitionRing:
    """Records written to each partition, per ten seconds of the last ten minutes."""

    def __init__(self) -> None:
        self._before: array[int] | None = None
        self._columns: list[array[float]] = []

    def sample(self, ends: "array[int]", taken_over: Collection[int] = ()) -> None:
        """Sample all ends; the places in `taken_over` were reused for other partitions."""
        before, self._before = self._before, array("q", ends)
        if before is None:
            return
        for slot in taken_over:
            if slot < len(before):
                before[slot] = ends[slot]
            for column in self._columns:
                if slot < len(column):
                    column[slot] = 0.0
        grown = array("f", map(int.__sub__, ends, before))
        # Partitions that were added since start at their present end.
        grown.extend([0.0] * (len(ends) - len(before)))
        self._columns.append(grown)
        del self._columns[:-PARTITION_STEPS]

    def rates(self, slot: int) -> list[float]:
        """Return records per second, the oldest first."""
        return [max(0.0, column[slot]) / STEP_S for column in self._columns if slot < len(column)]
