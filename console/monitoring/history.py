"""Records the commits of one group in the partitions of one topic, in one packed array.

Pure. A large cluster has a hundred thousand of these partitions, so each is a few numbers of eight
bytes in a shared array and no object of its own.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from console.monitoring.verdicts import (
    BURST_MS,
    SILENCE_FACTOR,
    WINDOW_MS,
    Evidence,
    Reader,
    Trend,
)

# The lag is compared by its minima, since commits come in batches. A minimum is taken of the lags
# right after a commit, so that a client that commits once a minute has one in each window, and not
# every second one.
LOW_MS: Final = 45_000
# Minima are compared in three pairs, the oldest some five minutes old.
LOWS: Final = 6
# Two equal ones in a row end a rise: a single one may be a lucky moment.
MAX_EQUAL: Final = 2
# A lag differs by what arrives in this time, depending on when commits and looks fall.
SLACK_MS: Final = 10_000
# The moving average of what arrives: each window weighs a quarter.
ARRIVED_WEIGHT: Final = 4

# The columns of a cell, which describes one partition.
COMMITTED: Final = 0
COMMIT_MS: Final = 1
BEHIND_SINCE: Final = 2
REWOUND_FROM: Final = 3
PAUSE_MS: Final = 4
PROGRESS_MS: Final = 5
LAG: Final = 6
SEEN_COMMITTED: Final = 7
SEEN_COMMIT_MS: Final = 8
# The timestamp of the oldest unread record, and the offset that it was reported for.
WRITTEN_MS: Final = 9
WRITTEN_AT: Final = 10
FIRST_SEEN: Final = 11
# When the first window began, and the present one; 0 before a commit begins another first one.
WATCHED_SINCE: Final = 12
WINDOW_SINCE: Final = 13
# Where the partition ended when the present window began, and the one before.
WINDOW_END: Final = 14
BEFORE_END: Final = 15
# Records that arrive within SLACK_MS.
SLACK: Final = 16
# The lag from which it grows, since when, and how often it did not.
RISE_FROM: Final = 17
RISE_SINCE: Final = 18
EQUAL: Final = 19
# The minimum of the present window, followed by those before it, the newest first.
LOW: Final = 20
CELL: Final = LOW + LOWS
UNKNOWN: Final = -1
# The minimum of a window without a commit so far.
NO_LOW: Final = 2**62
EMPTY: Final = (0,) * CELL
PRESENT: Final = Reader()


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over all partitions of a group in a topic after one look."""

    lag: int
    committed: int
    end: int
    unknown: int  # partitions whose end is unknown
    oldest_ms: int = 0  # the timestamp of the oldest unread record; 0 if unknown
    undated: int = 0  # partitions where it is unknown or that of an earlier record


class History:
    """The cells of one pair of group and topic. Not thread-safe."""

    __slots__ = ("_began_ms", "_cells", "_places")

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._cells = array("q")
        self._began_ms = 0  # when its reader came

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, partition: int) -> bool:
        return partition in self._places

    def partitions(self) -> Iterator[int]:
        return iter(self._places)

    def commit(
        self, partition: int, *, committed: int, commit_ms: int, is_reading: bool = True
    ) -> None:
        """Note a commit; the next look evaluates it.

        `is_reading` is False for offsets that were set while nothing read: they are no progress.
        """
        base = self._places.get(partition)
        cells = self._cells
        if base is None:
            base = self._places[partition] = len(cells)
            cells.extend(EMPTY)
            cells[base + LAG] = UNKNOWN
        cells[base + COMMITTED] = committed
        cells[base + COMMIT_MS] = commit_ms
        if not is_reading:
            cells[base + SEEN_COMMITTED], cells[base + SEEN_COMMIT_MS] = committed, commit_ms
            cells[base + REWOUND_FROM] = 0
            # The minima are those of another position. Records that are left still wait.
            cells[base + WINDOW_SINCE] = 0

    def begin(self, now_ms: int) -> None:
        """Begin with a new reader, to which earlier pauses and lags do not belong."""
        self._began_ms = now_ms
        for base in self._places.values():
            self._cells[base + WINDOW_SINCE] = 0

    def forget(self, partition: int) -> None:
        """Drop a partition whose committed offset is gone."""
        base = self._places.pop(partition, None)
        if base is None:
            return
        last = len(self._cells) - CELL
        if base != last:
            self._cells[base : base + CELL] = self._cells[last:]
            moved = next(index for index, place in self._places.items() if place == last)
            self._places[moved] = base
        del self._cells[last:]

    def look(
        self, partition: int, *, committed: int, commit_ms: int, end: int | None, now_ms: int
    ) -> None:
        """Note a commit and evaluate it at once."""
        self.commit(partition, committed=committed, commit_ms=commit_ms)
        self._weigh(self._places[partition], committed, end, now_ms)

    def look_at_all(
        self, bounds: dict[int, int], starts: "array[int]", ends: "array[int]", now_ms: int
    ) -> Sums:
        """Evaluate every partition; `bounds` maps it to its place in `starts` and `ends`."""
        lag = committed_sum = end_sum = unknown = oldest_ms = undated = 0
        cells = self._cells
        for partition, base in self._places.items():
            slot = bounds.get(partition)
            committed = cells[base]
            if slot is None:
                unknown += 1
                self._weigh(base, committed, None, now_ms)
                continue
            end, start = ends[slot], starts[slot]
            following = max(start, committed)
            waiting = end - following
            committed_sum += committed
            end_sum += end
            if waiting > 0:
                lag += waiting
                self._weigh(base, following, end, now_ms)
                written_ms = cells[base + WRITTEN_MS]
                if not written_ms or cells[base + WRITTEN_AT] != following:
                    undated += 1
                if written_ms and (not oldest_ms or written_ms < oldest_ms):
                    oldest_ms = written_ms
                continue
            if (
                not cells[base + LAG]
                and cells[base + SEEN_COMMITTED] == committed
                and cells[base + SEEN_COMMIT_MS] == cells[base + COMMIT_MS]
            ):
                # Still at its end, as most partitions are. A repeated commit of the same offset is
                # evaluated nevertheless, or such commits would look like one long pause.
                cells[base + BEHIND_SINCE] = now_ms
                continue
            self._weigh(base, following, end, now_ms)
        return Sums(lag, committed_sum, end_sum, unknown, oldest_ms, undated)

    def _weigh(self, base: int, following: int, end: int | None, now_ms: int) -> None:
        cells = self._cells
        lag = UNKNOWN if end is None else max(0, end - following)
        committed, commit_ms = cells[base], cells[base + COMMIT_MS]
        if not cells[base + FIRST_SEEN]:
            cells[base + FIRST_SEEN] = cells[base + BEHIND_SINCE] = now_ms
            cells[base + PROGRESS_MS] = now_ms
        elif commit_ms != cells[base + SEEN_COMMIT_MS]:
            self._weigh_commit(base, lag, end, now_ms)
        if not cells[base + WINDOW_SINCE] and end is not None:
            _begin_trend(cells, base, lag, end, now_ms)
        if cells[base + REWOUND_FROM] and (committed >= cells[base + REWOUND_FROM] or lag == 0):
            cells[base + REWOUND_FROM] = 0
        if lag == 0:
            cells[base + BEHIND_SINCE] = now_ms
            cells[base + WRITTEN_MS] = 0
        elif cells[base + LAG] == 0:
            # It was at its end until now: without changes there is no look. So the record arrived
            # now, until its leader reports the timestamp.
            cells[base + BEHIND_SINCE] = cells[base + WRITTEN_MS] = now_ms
            cells[base + WRITTEN_AT] = UNKNOWN
        cells[base + SEEN_COMMITTED] = committed
        cells[base + SEEN_COMMIT_MS] = commit_ms
        cells[base + LAG] = lag

    def _weigh_commit(self, base: int, lag: int, end: int | None, now_ms: int) -> None:
        cells = self._cells
        committed, before = cells[base], cells[base + SEEN_COMMITTED]
        commit_ms = cells[base + COMMIT_MS]
        # A pause only counts while records waited, so that an idle night does not make silence
        # usual. Records that no look found waiting waited less than the time between two looks.
        since_ms = max(cells[base + BEHIND_SINCE], self._began_ms)
        waited = commit_ms - since_ms if cells[base + LAG] else 0
        pause = min(commit_ms - cells[base + SEEN_COMMIT_MS], waited)
        if pause > max(WINDOW_MS, SILENCE_FACTOR * cells[base + PAUSE_MS]) or committed < before:
            # It had stopped, or reads again: the minima of before say nothing about what follows.
            cells[base + WINDOW_SINCE] = 0
        # Each commit that comes sooner shortens the remembered pause by a tenth.
        cells[base + PAUSE_MS] = max(pause, cells[base + PAUSE_MS] * 9 // 10)
        if committed > before:
            cells[base + PROGRESS_MS] = now_ms
        elif committed < before:
            cells[base + REWOUND_FROM] = max(before, cells[base + REWOUND_FROM])
        if end is None or not cells[base + WINDOW_SINCE]:
            return
        cells[base + LOW] = min(cells[base + LOW], lag)
        if now_ms - cells[base + WINDOW_SINCE] >= LOW_MS:
            _end_window(cells, base, end, now_ms)

    def date(self, partition: int, following: int, written_ms: int) -> None:
        """Note the timestamp of the record at the offset where a group continues."""
        base = self._places.get(partition)
        cells = self._cells
        if base is None or not cells[base + LAG]:
            return
        cells[base + WRITTEN_MS], cells[base + WRITTEN_AT] = written_ms, following
        first_ms = cells[base + BEHIND_SINCE]
        if cells[base + PROGRESS_MS] == cells[base + FIRST_SEEN] == first_ms > written_ms:
            # Behind since it was first seen, without any progress: the unread record's timestamp
            # says since when, so that a new collector need not watch for a whole window first.
            cells[base + BEHIND_SINCE] = written_ms

    def is_dated(self, partition: int, following: int) -> bool:
        base = self._places[partition]
        is_known = bool(self._cells[base + WRITTEN_MS])
        return is_known and self._cells[base + WRITTEN_AT] == following

    def written_ms(self, partition: int) -> int:
        """Return the timestamp of the oldest unread record; 0 if unknown."""
        return self._cells[self._places[partition] + WRITTEN_MS]

    def committed(self, partition: int) -> tuple[int, int]:
        """Return a committed offset, and when it was committed."""
        base = self._places[partition]
        return self._cells[base], self._cells[base + COMMIT_MS]

    def lag(self, partition: int) -> int | None:
        lag = self._cells[self._places[partition] + LAG]
        return None if lag == UNKNOWN else lag

    def suspects(self, now_ms: int) -> Iterator[int]:
        """Return the partitions that need a judgement: those that do not plainly keep up.

        To judge one costs ten times as much, and on a large cluster half of all are behind.
        """
        long_ago = now_ms - WINDOW_MS
        cells = self._cells
        for index, base in self._places.items():
            lag = cells[base + LAG]
            if not lag:
                continue
            since_ms = cells[base + BEHIND_SINCE]
            if since_ms > long_ago and since_ms > cells[base + FIRST_SEEN]:
                continue
            # The offset grows by commits only, so these have not stopped where it grows.
            if (
                lag == UNKNOWN
                or cells[base] < cells[base + BEFORE_END]
                or cells[base + PROGRESS_MS] <= long_ago
                or cells[base + REWOUND_FROM]
                or _growth(cells, base) > cells[base + SLACK]
            ):
                yield index

    def lagging(self) -> Iterator[int]:
        """Return the partitions with unread records, or with an unknown end."""
        return (index for index, base in self._places.items() if self._cells[base + LAG])

    def evidence(
        self, partition: int, *, reader: Reader = PRESENT, is_loss_ahead: bool = False
    ) -> Evidence:
        base = self._places[partition]
        cells = self._cells
        return Evidence(
            lag=self.lag(partition),
            behind_since_ms=cells[base + BEHIND_SINCE],
            first_seen_ms=cells[base + FIRST_SEEN],
            rewound_from=cells[base + REWOUND_FROM],
            commit_ms=cells[base + COMMIT_MS],
            pause_ms=cells[base + PAUSE_MS],
            progress_ms=cells[base + PROGRESS_MS],
            trend=_trend(cells, base),
            reader=reader,
            is_loss_ahead=is_loss_ahead,
        )


def _begin_trend(cells: "array[int]", base: int, lag: int, end: int, now_ms: int) -> None:
    cells[base + WATCHED_SINCE] = cells[base + WINDOW_SINCE] = now_ms
    cells[base + RISE_SINCE] = now_ms
    cells[base + WINDOW_END] = cells[base + BEFORE_END] = end
    cells[base + RISE_FROM] = lag
    cells[base + EQUAL] = 0
    cells[base + LOW] = NO_LOW
    for place in range(base + LOW + 1, base + CELL):
        cells[place] = lag


def _end_window(cells: "array[int]", base: int, end: int, now_ms: int) -> None:
    """Compare the minimum of the window that ends with those of the minutes before."""
    passed_ms = now_ms - cells[base + WINDOW_SINCE]
    arrived = max(0, end - cells[base + WINDOW_END]) * SLACK_MS // passed_ms
    known = cells[base + SLACK]
    kept = known * (ARRIVED_WEIGHT - 1)
    cells[base + SLACK] = (kept + arrived) // ARRIVED_WEIGHT if known else arrived
    low = base + LOW
    newest, middle, oldest = (min(cells[at : at + 2]) for at in (low, low + 2, low + 4))
    is_risen = newest > oldest
    cells[base + EQUAL] = 0 if is_risen else cells[base + EQUAL] + 1
    is_new = now_ms - cells[base + RISE_SINCE] < BURST_MS
    if middle - newest > cells[base + SLACK] or (
        not is_risen and (is_new or cells[base + EQUAL] >= MAX_EQUAL)
    ):
        cells[base + RISE_FROM], cells[base + RISE_SINCE] = newest, now_ms
    cells[low + 1 : base + CELL] = cells[low : base + CELL - 1]
    cells[low] = NO_LOW
    cells[base + BEFORE_END] = cells[base + WINDOW_END]
    cells[base + WINDOW_SINCE], cells[base + WINDOW_END] = now_ms, end


def _growth(cells: "array[int]", base: int) -> int:
    """Return how much the newest minimum is above the lag from which it grows."""
    low, before = cells[base + LOW + 1], cells[base + LOW + 2]
    return (min(before, low)) - cells[base + RISE_FROM]


def _trend(cells: "array[int]", base: int) -> Trend:
    first, second, third, fourth = cells[base + LOW + 1 : base + LOW + 5]
    newest = min(second, first)
    return Trend(
        watched_since_ms=cells[base + WATCHED_SINCE],
        grows_since_ms=cells[base + RISE_SINCE],
        growth=newest - cells[base + RISE_FROM],
        fall=(min(fourth, third)) - newest,
        slack=cells[base + SLACK] or 1,
        is_read_up=cells[base] >= cells[base + BEFORE_END],
    )
