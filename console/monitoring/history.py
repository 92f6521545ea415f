"""Records the commits of one group in the partitions of one topic, in one packed array.

Pure. A large cluster has a hundred thousand of these partitions, so each is a few numbers of eight
bytes in a shared array and no object of its own.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from console.monitoring.verdicts import WINDOW_MS, Evidence

# The columns of a cell, which describes one partition.
COMMITTED: Final = 0
COMMIT_MS: Final = 1
BEHIND_SINCE: Final = 2
REWOUND_FROM: Final = 3
PAUSE_MS: Final = 4
PROGRESS_MS: Final = 5
COMMIT_LAG: Final = 6
FALL_MS: Final = 7
LAG: Final = 8
SEEN_COMMITTED: Final = 9
SEEN_COMMIT_MS: Final = 10
# The timestamp of the oldest unread record, and the offset that it was reported for.
WRITTEN_MS: Final = 11
WRITTEN_AT: Final = 12
CELL: Final = 13
UNKNOWN: Final = -1
EMPTY: Final = (0,) * CELL


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

    __slots__ = ("_cells", "_places")

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._cells = array("q")

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, partition: int) -> bool:
        return partition in self._places

    def partitions(self) -> Iterator[int]:
        return iter(self._places)

    def commit(self, partition: int, *, committed: int, commit_ms: int) -> None:
        """Note a commit; the next look evaluates it."""
        base = self._places.get(partition)
        if base is None:
            base = self._places[partition] = len(self._cells)
            self._cells.extend(EMPTY)
            self._cells[base + LAG] = UNKNOWN
        self._cells[base + COMMITTED] = committed
        self._cells[base + COMMIT_MS] = commit_ms

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
        if not cells[base + BEHIND_SINCE]:
            cells[base + BEHIND_SINCE] = now_ms
            cells[base + PROGRESS_MS] = cells[base + FALL_MS] = now_ms
            cells[base + COMMIT_LAG] = lag
        elif commit_ms != cells[base + SEEN_COMMIT_MS]:
            self._weigh_commit(base, lag, now_ms)
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

    def _weigh_commit(self, base: int, lag: int, now_ms: int) -> None:
        cells = self._cells
        committed, before = cells[base], cells[base + SEEN_COMMITTED]
        commit_ms = cells[base + COMMIT_MS]
        # A pause only counts while records waited, so that an idle night does not make silence
        # usual. Records that no look found waiting waited less than the time between two looks.
        waited = commit_ms - cells[base + BEHIND_SINCE] if cells[base + LAG] else 0
        pause = min(commit_ms - cells[base + SEEN_COMMIT_MS], waited)
        # Each commit that comes sooner shortens the remembered pause by a tenth.
        cells[base + PAUSE_MS] = max(pause, cells[base + PAUSE_MS] * 9 // 10)
        if committed > before:
            cells[base + PROGRESS_MS] = now_ms
        elif committed < before:
            cells[base + REWOUND_FROM] = max(before, cells[base + REWOUND_FROM])
        if lag < cells[base + COMMIT_LAG]:
            cells[base + FALL_MS] = now_ms
        cells[base + COMMIT_LAG] = lag

    def date(self, partition: int, following: int, written_ms: int) -> None:
        """Note the timestamp of the record at the offset where a group continues."""
        base = self._places.get(partition)
        cells = self._cells
        if base is None or not cells[base + LAG]:
            return
        cells[base + WRITTEN_MS], cells[base + WRITTEN_AT] = written_ms, following
        first_ms = cells[base + BEHIND_SINCE]
        if cells[base + PROGRESS_MS] == cells[base + FALL_MS] == first_ms > written_ms:
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
        """Return the few partitions for which a verdict other than OK is possible."""
        long_ago = now_ms - WINDOW_MS
        cells = self._cells
        for index, base in self._places.items():
            lag = cells[base + LAG]
            if lag and (lag == UNKNOWN or cells[base + BEHIND_SINCE] <= long_ago):
                yield index

    def lagging(self) -> Iterator[int]:
        """Return the partitions with unread records, or with an unknown end."""
        return (index for index, base in self._places.items() if self._cells[base + LAG])

    def evidence(self, partition: int, *, is_loss_ahead: bool = False) -> Evidence:
        base = self._places[partition]
        cells = self._cells
        return Evidence(
            self.lag(partition),
            cells[base + BEHIND_SINCE],
            cells[base + REWOUND_FROM],
            cells[base + COMMIT_MS],
            cells[base + PAUSE_MS],
            cells[base + PROGRESS_MS],
            cells[base + FALL_MS],
            is_loss_ahead,
        )
