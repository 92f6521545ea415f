"""Holds the records of a partition that are not in the bucket yet, until a chunk is full; pure.

A chunk is a run of records of one partition, which become one object for each of their folders.
The metadata of objects has the end of the chunk and a digest of its records, so that an attempt
to write the same object again, after a failure, finds what is there and continues after it.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from connectors.sdk.schemas import Schema

# Chunks are in memory until the file is closed, so they end here regardless of `flush.size`.
MAX_CHUNK_BYTES: Final = 32 * 1024 * 1024
# The limit for all chunks of a task: beyond it, the largest is written early.
MAX_HELD_BYTES: Final = 128 * 1024 * 1024
# Each folder is an object, and a request.
MAX_FOLDERS: Final = 1000
NO_TIME: Final = -1
# The memory of an entry besides its payload: its object, its numbers and the name of its folder. It
# exceeds that of small records themselves. A process that grows too large is replaced, and loses
# its chunks.
ENTRY_BYTES: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record that waits to be written."""

    offset: int
    timestamp_ms: int | None
    time_ms: int | None  # by which files are closed
    folder: str
    payload: Any  # a line, or a Struct
    size: int
    schema: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules for the end of a chunk."""

    flush_size: int
    rotate_interval_ms: int = -1
    rotate_schedule_ms: int = -1
    # The offset of the local time for scheduled ends, in milliseconds from UTC.
    zone_shift_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The records of a chunk for one object."""

    folder: str
    entries: list[Entry]

    @property
    def start(self) -> int:
        return self.entries[0].offset

    def digest(self) -> str:
        """Return a digest of the offsets and timestamps of the records.

        A topic that was deleted and recreated has other timestamps at the same offsets.
        """
        told = hashlib.sha256()
        for entry in self.entries:
            moment_ms = NO_TIME if entry.timestamp_ms is None else entry.timestamp_ms
            told.update(struct.pack(">qq", entry.offset, moment_ms))
        return told.hexdigest()


@dataclass(slots=True)
class Chunk:
    """The open chunk of a partition. Entries are added in the order of their offsets."""

    opened_ms: int  # by the wall clock
    entries: list[Entry] = field(default_factory=list)
    size: int = 0
    # The end of this chunk in an earlier attempt, which has written some object of it.
    wanted_end: int | None = None
    folders: set[str] = field(default_factory=set)

    @property
    def end(self) -> int:
        return self.entries[-1].offset + 1

    def add(self, entry: Entry) -> None:
        assert not self.entries or entry.offset > self.entries[-1].offset
        self.entries.append(entry)
        self.size += entry.size
        self.folders.add(entry.folder)

    def ends_before(self, entry: Entry, rules: Rules) -> bool:
        """Return whether a record belongs to the next chunk."""
        if not self.entries:
            return False
        if self.wanted_end is not None:
            return entry.offset >= self.wanted_end
        first, last = self.entries[0], self.entries[-1]
        if entry.schema is not last.schema and entry.schema != last.schema:
            return True
        if rules.rotate_interval_ms <= 0 or first.time_ms is None or entry.time_ms is None:
            return False
        return (
            entry.folder != last.folder or entry.time_ms - first.time_ms >= rules.rotate_interval_ms
        )

    def is_full(self, rules: Rules) -> bool:
        if not self.entries:
            return False
        if self.wanted_end is not None:
            return self.end >= self.wanted_end
        return (
            len(self.entries) >= rules.flush_size
            or self.size >= MAX_CHUNK_BYTES
            or len(self.folders) >= MAX_FOLDERS
        )

    def is_due(self, rules: Rules, now_ms: int) -> bool:
        """Return whether a scheduled end has passed since the chunk was opened."""
        every = rules.rotate_schedule_ms
        if every <= 0 or not self.entries or self.wanted_end is not None:
            return False
        shift = rules.zone_shift_ms
        return (now_ms + shift) // every > (self.opened_ms + shift) // every

    def files(self) -> list[File]:
        """Return the records by folder, in the order of their first offsets."""
        return group(self.entries)

    def cut(self, end: int) -> list[Entry]:
        """Keep the entries before an offset; return the others."""
        rest = [entry for entry in self.entries if entry.offset >= end]
        self.entries = [entry for entry in self.entries if entry.offset < end]
        self.size = sum(entry.size for entry in self.entries)
        self.folders = {entry.folder for entry in self.entries}
        return rest


def group(entries: Iterable[Entry]) -> list[File]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.folder, []).append(entry)
    return [File(folder=folder, entries=listed) for folder, listed in found.items()]
