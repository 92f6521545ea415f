"""Stores series in a file: ten-second samples for six hours, minute samples for seven days.

Only one process opens the file, so it needs none of the turns that writers of the other databases
take (ADR 0031). Its content is not worth the cost of making it safe: a damaged file is set aside,
and a new one is created. While another program holds it, or the disk is full, each use tries again.
"""

import json
import math
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from console.monitoring.packing import Damaged, pack, roll_up, unpack
from console.monitoring.rings import BLOCK_S, BLOCK_STEPS, KINDS, STEP_S, Finished, Name

FILE_NAME: Final = "samples.db"
HOUR_S: Final = 3600
FINE_S: Final = STEP_S
COARSE_S: Final = 60
# How long each resolution is kept; the order is that of pruning, the finest first.
KEPT_S: Final = {FINE_S: 6 * HOUR_S, COARSE_S: 7 * 24 * HOUR_S}
MAX_BYTES: Final = 2 * 1024**3
# A full file is pruned to this share of its limit.
ROOM: Final = 0.9
FORMAT: Final = 1
# How long a call waits for another program's lock; callers try again, and readers wait behind them.
LOCK_S: Final = 1.0

TABLES: Final = """
CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE IF NOT EXISTS samples (
    step INTEGER NOT NULL, hour INTEGER NOT NULL, series INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (step, hour, series)) WITHOUT ROWID;
"""
APPEND: Final = """
INSERT INTO samples (step, hour, series, data) VALUES (?, ?, ?, ?)
ON CONFLICT (step, hour, series) DO UPDATE SET data = CAST(data || excluded.data AS BLOB)
"""


class SamplesFailed(Exception):
    """The file could not be written or read; the message says why."""


class OtherFormat(sqlite3.DatabaseError):
    """The file was written by another release."""


@contextmanager
def told_as_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise SamplesFailed(f"{path}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples at equal distances; a missing one is NaN."""

    start_s: int
    step_s: int
    samples: list[float]


def nothing_known(start_s: int, end_s: int, step_s: int = FINE_S) -> Series:
    """Return a series that is one gap."""
    start_s -= start_s % step_s
    return Series(
        start_s=start_s, step_s=step_s, samples=[math.nan] * max(0, -(-(end_s - start_s) // step_s))
    )


class Samples:
    """The file of samples. Thread-safe: a call may still run after its caller was cancelled.

    Closing a connection under a running statement would crash the process.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.set_aside = ""  # why the file of an earlier run could not be read; for the log
        self._max_bytes = max_bytes
        self._ids: dict[tuple[str, Name], int] = {}
        self._turn = threading.RLock()
        self._database: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open the file now; SamplesFailed if that is refused, and the next use tries again."""
        with self._turn, told_as_failure(self.path):
            self._connection()

    def close(self) -> None:
        with self._turn:
            if self._database is not None:
                self._database.close()

    def add(self, blocks: Iterable[Finished]) -> int:
        """Write blocks in one transaction; return how many."""
        with self._turn:
            try:
                return self._add(blocks)
            except SamplesFailed:
                # The ids that the failed transaction assigned do not exist.
                self._ids.clear()
                raise

    def _add(self, blocks: Iterable[Finished]) -> int:
        with told_as_failure(self.path), self._connection():
            rows = [row for block in blocks for row in self._rows(block)]
            self._connection().executemany(APPEND, rows)
        return len(rows) // len(KEPT_S)

    def read(self, kind: str, name: Name, metric: str, *, start_s: int, end_s: int) -> Series:
        """Return a metric of a series, in the finest resolution that covers the time."""
        place = KINDS[kind].metrics.index(metric)
        oldest = end_s - KEPT_S[FINE_S]
        with self._turn, told_as_failure(self.path):
            step_s = FINE_S if start_s >= oldest and self._has(FINE_S, start_s) else COARSE_S
            found = nothing_known(start_s, end_s, step_s)
            stored = self._stored(kind, name, place, step_s, found.start_s, end_s)
            for at_s, value in stored:
                found.samples[(at_s - found.start_s) // step_s] = value
        return found

    def prune(self, now_s: int) -> None:
        """Delete expired samples, and the oldest of the finest resolution if the file is full."""
        with self._turn, told_as_failure(self.path):
            self._prune(now_s)

    def _prune(self, now_s: int) -> None:
        with self._connection():
            for step_s, kept_s in KEPT_S.items():
                self._connection().execute(
                    "DELETE FROM samples WHERE step = ? AND hour < ?",
                    (step_s, (now_s - kept_s) // HOUR_S),
                )
        if self.used_bytes() > self._max_bytes * ROOM:
            for step_s in KEPT_S:
                self._make_room(step_s)
        with self._connection():
            self._connection().execute(
                "DELETE FROM series WHERE id NOT IN (SELECT DISTINCT series FROM samples)"
            )
        self._ids.clear()

    def used_bytes(self) -> int:
        """Return the bytes of the file that are in use."""
        with self._turn:
            numbers = [
                self._connection().execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            ]
        return int((numbers[0] - numbers[1]) * numbers[2])

    def _make_room(self, step_s: int) -> None:
        """Delete hours of one resolution, oldest first, until the file is small enough."""
        hours = (
            self._connection()
            .execute("SELECT DISTINCT hour FROM samples WHERE step = ? ORDER BY hour", (step_s,))
            .fetchall()
        )
        for (hour,) in hours:
            if self.used_bytes() <= self._max_bytes * ROOM:
                return
            with self._connection():
                self._connection().execute(
                    "DELETE FROM samples WHERE step = ? AND hour = ?", (step_s, hour)
                )

    # --- rows ----------------------------------------------------------------------------------

    def _rows(self, block: Finished) -> Iterator[tuple[int, int, int, bytes]]:
        if not block.metrics or not block.metrics[0]:
            return
        series = self._id(block.kind, block.name)
        hour, within_s = divmod(block.start_s, HOUR_S)
        yield FINE_S, hour, series, pack(within_s // FINE_S, block.metrics)
        ratio = COARSE_S // FINE_S
        coarse = [roll_up(samples, ratio) or [math.nan] for samples in block.metrics]
        yield COARSE_S, hour, series, pack(within_s // COARSE_S, coarse)

    def _id(self, kind: str, name: Name) -> int:
        key = (kind, name)
        if key not in self._ids:
            written = json.dumps(name)
            self._connection().execute(
                "INSERT OR IGNORE INTO series (kind, name) VALUES (?, ?)", (kind, written)
            )
            found = self._find(kind, name)
            assert found is not None, "it was there, or is now"
            self._ids[key] = found
        return self._ids[key]

    def _find(self, kind: str, name: Name) -> int | None:
        row = (
            self._connection()
            .execute("SELECT id FROM series WHERE kind = ? AND name = ?", (kind, json.dumps(name)))
            .fetchone()
        )
        return None if row is None else int(row[0])

    def _has(self, step_s: int, start_s: int) -> bool:
        """Tell whether a resolution covers the requested time, or reaches back as far as any."""
        oldest, coarsest = (
            self._connection()
            .execute("SELECT min(hour) FROM samples WHERE step = ?", (resolution,))
            .fetchone()[0]
            for resolution in (step_s, COARSE_S)
        )
        if oldest is None:
            return coarsest is None
        return bool(oldest <= max(start_s // HOUR_S, coarsest or 0))

    def _stored(
        self, kind: str, name: Name, metric: int, step_s: int, start_s: int, end_s: int
    ) -> Iterator[tuple[int, float]]:
        series = self._find(kind, name)
        found = self._connection().execute(
            "SELECT hour, data FROM samples WHERE step = ? AND hour BETWEEN ? AND ? AND series = ?",
            (step_s, start_s // HOUR_S, end_s // HOUR_S, series),
        )
        for hour, data in found:
            # A damaged hour is a gap.
            with suppress(Damaged):
                for block in unpack(data, len(KINDS[kind].metrics)):
                    for place, value in enumerate(block.metrics[metric], start=block.first):
                        at_s = hour * HOUR_S + place * step_s
                        if start_s <= at_s < end_s:
                            yield at_s, value

    # --- the file ------------------------------------------------------------------------------

    def _connection(self) -> sqlite3.Connection:
        """Return the open file; open it if another program or a full disk refused that before."""
        if self._database is None:
            try:
                self._database = self._opened()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._set_aside(str(error))
                self._database = self._opened()
        return self._database

    def _set_aside(self, reason: str) -> None:
        """Rename a damaged file and its log, over no earlier one."""
        aside, number = self.path.with_name(f"{self.path.name}.damaged"), 1
        while aside.exists():
            number += 1
            aside = self.path.with_name(f"{self.path.name}.damaged-{number}")
        self.path.replace(aside)
        with suppress(FileNotFoundError):
            self.path.with_name(f"{self.path.name}-wal").replace(f"{aside}-wal")
        self.path.with_name(f"{self.path.name}-shm").unlink(missing_ok=True)
        self.set_aside = f"{reason}; it is kept as {aside.name}"

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=LOCK_S, check_same_thread=False)
        try:
            if self._format(database) != FORMAT:
                database.execute("PRAGMA journal_mode = WAL")
                database.executescript(TABLES)
                database.execute(f"PRAGMA user_version = {FORMAT}")
            # A power failure may lose the last minutes, but does not corrupt the file.
            database.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _format(self, database: sqlite3.Connection) -> int:
        with closing(database.execute("PRAGMA user_version")) as asked:
            version: int = asked.fetchone()[0]
        if version not in {0, FORMAT}:
            raise OtherFormat(f"{self.path} is of format {version}, not {FORMAT}")
        return version


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Tell whether the file itself is at fault: not so with a lock, a full disk or a bad mode."""
    if isinstance(error, OtherFormat):
        return True
    # The first byte of a code is the error, the others are its details.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


assert HOUR_S % BLOCK_S == 0, "no block spans two hours"
assert BLOCK_STEPS % (COARSE_S // FINE_S) == 0, "a block has whole minutes"
