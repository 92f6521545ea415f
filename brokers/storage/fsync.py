"""Flushes one log: the owner prepares a ticket of what to sync, any thread runs it.

A ticket holds descriptors and paths, not the log, so that `run` can execute in a thread while the
owner goes on appending. What it covers is fixed when it is made; the owner moves the flushed offset
afterwards. A failed flush is never retried, since the kernel has marked the lost pages as clean and
a second call would report success.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brokers.protocol.errors import KafkaError
from brokers.storage.checkpoints import encode_lines
from brokers.storage.epochs import EpochCache
from brokers.storage.errors import (
    TOO_MANY_OPEN_ERRNOS,
    LogDirFailed,
    TooManyOpenFiles,
    refusals,
)
from brokers.storage.files import Files, write_all
from brokers.storage.handles import LogFile
from brokers.storage.names import LEADER_EPOCHS, TEMPORARY
from brokers.storage.new_folders import NewFolder, make_folders
from brokers.storage.segment import Segment
from brokers.storage.txn_index import TxnIndex


class Snapshot(NamedTuple):
    """A producer snapshot that was written and is not synced yet."""

    offset: int
    path: str
    fd: int


@dataclass(slots=True, kw_only=True)
class Rest:
    """What a flush syncs beside the written log files: usually nothing."""

    new_folders: Sequence[NewFolder] = ()
    pinned: list[LogFile] = field(default_factory=list)  # of all segments with something in here
    rolled: list[Segment] = field(default_factory=list)  # for the owner, like the next one
    indexed: set[Segment] = field(default_factory=set)
    snapshots: list[Snapshot] = field(default_factory=list)  # closed by the owner
    # With descriptor and mark.
    txn_indexes: list[tuple[TxnIndex, int, int]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)  # index files, complete and closed
    epochs: tuple[str, bytes] | None = None
    syncs_folder: bool = False


class FlushTicket:
    """Made by `begin_flush`, returned to `finish_flush`; `run` once in between, in any thread.

    While it exists its log files are pinned: neither closed nor deleted.
    """

    __slots__ = (
        "_path",
        "end_offset",
        "failure",
        "files",
        "folder",
        "is_done",
        "logs",
        "refusal",
        "rest",
    )

    def __init__(
        self, files: Files, folder: str, end_offset: int, rest: Rest | None = None
    ) -> None:
        self.files = files
        self.folder = folder
        # Everything below is on the disk after the run; a truncation meanwhile lowers it.
        self.end_offset = end_offset
        self.logs: list[LogFile] = []
        self.rest = rest
        self.is_done = False
        self.failure: LogDirFailed | None = None
        self.refusal: KafkaError | None = None  # nothing was lost; the next ticket retries all
        self._path = folder  # the path of the current call

    @property
    def pinned(self) -> list[LogFile]:
        """Return the files that are neither closed nor deleted until the ticket is returned."""
        return self.logs if self.rest is None else self.rest.pinned

    def run(self) -> None:
        """Sync everything; raise LogDirFailed, and store it for the owner.

        OutOfSpace or TooManyOpenFiles only mean that it could not be done yet.
        """
        assert not self.is_done, "a ticket runs once"
        try:
            for file in self.logs:
                self._path = file.path
                self.files.datasync(file.fd)
            if self.rest is not None:
                self._run_rest(self.rest)
        except KafkaError as error:
            self.refusal = error
            raise
        except OSError as error:
            if error.errno in TOO_MANY_OPEN_ERRNOS:
                self.refusal = TooManyOpenFiles(self._path, "fsync")
                raise self.refusal from error
            self.failure = LogDirFailed(self._path, "fsync", error)
            raise self.failure from error
        except BaseException as error:
            # A bug or the thread's end; either way the state of the disk is unknown.
            self.failure = LogDirFailed(self._path, "fsync", OSError(repr(error)))
            raise
        finally:
            self.is_done = True

    def _run_rest(self, rest: Rest) -> None:
        if rest.new_folders:
            make_folders(self.files, self.folder, rest.new_folders)
        for snapshot in rest.snapshots:
            self._path = snapshot.path
            self.files.datasync(snapshot.fd)
        for index, fd, _mark in rest.txn_indexes:
            self._path = index.path
            self.files.datasync(fd)
        for closed in rest.paths:
            self._path = closed
            self._sync_closed(closed)
        if rest.epochs is not None:
            self._path = rest.epochs[0]
            _replace_epochs(self.files, *rest.epochs)
        if rest.syncs_folder:
            self._path = self.folder
            self.files.sync_folder(self.folder)

    def _sync_closed(self, path: str) -> None:
        try:
            fd = self.files.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return  # A segment that was deleted meanwhile needs no sync.
        try:
            self.files.datasync(fd)
        finally:
            self.files.close(fd)


def write_epochs(files: Files, path: str, data: bytes) -> None:
    """Replace the checkpoint of epochs; KafkaError for want of room leaves the old one."""
    _replace_epochs(files, path, data)
    files.sync_folder(os.path.dirname(path))


def _replace_epochs(files: Files, path: str, data: bytes) -> None:
    """Do the same, but leave the sync of the folder to the caller."""
    temporary = path + TEMPORARY
    with refusals(path, "checkpoint"):
        fd = files.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        with refusals(path, "checkpoint"):
            write_all(files, fd, data)
        files.datasync(fd)
    finally:
        files.close(fd)
    with refusals(path, "checkpoint"):
        files.rename(temporary, path)


class Flushes:
    """The flushed offset of a log, and what the next flush must cover. Belongs to its log."""

    __slots__ = ("_rolled", "_snapshots", "flushed_offset", "folder_changed", "is_new", "ticket")

    def __init__(self, flushed_offset: int, *, is_new: bool = False) -> None:
        self.flushed_offset = flushed_offset
        # The name of the first log file is unsynced, which is harmless while the file is empty.
        self.is_new = is_new
        self.folder_changed = False  # names were created, renamed or removed
        self.ticket: FlushTicket | None = None  # the one in progress
        self._rolled: list[Segment] = []
        self._snapshots: list[Snapshot] = []

    @property
    def has_rolled(self) -> bool:
        """Tell whether a closed segment is not synced yet."""
        return bool(self._rolled)

    def rolled(self, segment: Segment) -> None:
        """Add a complete segment to the next flush."""
        self._rolled.append(segment)
        self.folder_changed = True

    def wrote(self, snapshot: Snapshot) -> None:
        """Add a written snapshot, which the next flush syncs and closes."""
        self._snapshots.append(snapshot)
        self.folder_changed = True

    def deletable_below(self, offset: int) -> int:
        """Return the bound up to `offset` for deleting segments that recovery does not need.

        Recovery begins with the snapshot at a segment's beginning, so that one must be on the disk,
        and with the segment of the recovery point.
        """
        unsynced = [snapshot.offset for snapshot in self._snapshots]
        if self.ticket is not None and self.ticket.rest is not None:
            unsynced += [snapshot.offset for snapshot in self.ticket.rest.snapshots]
        return min(offset, self.flushed_offset, min(unsynced, default=offset + 1) - 1)

    def begin(
        self,
        files: Files,
        folder: str,
        segments: list[Segment],
        end_offset: int,
        epochs: EpochCache,
        indexed: set[Segment],
    ) -> FlushTicket | None:
        """Return a ticket for rolled segments and those given; None if all is synced.

        Also covers the aborted transactions of the `indexed` ones.
        """
        assert self.ticket is None, f"{folder} is being flushed already"
        dirty = [segment for segment in segments if segment.file.is_dirty]
        has_rest = self._rolled or self._snapshots or self.folder_changed or epochs.is_dirty
        if not dirty and not has_rest:
            return None
        if has_rest or self.is_new or indexed or any(segment.txn_index for segment in dirty):
            rest = self._take_rest(folder, epochs, indexed)
            ticket = FlushTicket(files, folder, end_offset, rest)
            for segment in dict.fromkeys([*rest.rolled, *dirty, *sorted(indexed, key=_base)]):
                _add_segment(ticket.logs, rest, segment)
        else:
            ticket = FlushTicket(files, folder, end_offset)
            for segment in dirty:
                _add_log(ticket.logs, segment.file)
        self.ticket = ticket
        return ticket

    def finish(self, ticket: FlushTicket) -> None:
        """Take back a ticket that has run, and advance the log's flushed offset."""
        assert ticket is self.ticket, "the ticket is not this log's"
        assert ticket.is_done, "the ticket has not run"
        self.ticket = None
        for file in ticket.pinned:
            file.unpin()
        if ticket.refusal is not None:
            self._take_up_again(ticket)
            return
        if ticket.rest is not None:
            for snapshot in ticket.rest.snapshots:
                ticket.files.close(snapshot.fd)
        if ticket.failure is None:
            if ticket.rest is not None:
                for index, _fd, mark in ticket.rest.txn_indexes:
                    index.synced(mark)
            self.flushed_offset = max(self.flushed_offset, ticket.end_offset)

    def truncated(self, offset: int) -> None:
        """Lower the flushed offset to the log's new end; a running ticket covers no more either."""
        self.flushed_offset = min(self.flushed_offset, offset)
        self.folder_changed = True
        if self.ticket is not None:
            self.ticket.end_offset = min(self.ticket.end_offset, offset)

    def removed(self, segments: Sequence[Segment]) -> None:
        """Drop deleted segments from the next sync, but sync their names."""
        self._rolled = [segment for segment in self._rolled if segment not in segments]
        rest = self.ticket.rest if self.ticket is not None else None
        if rest is not None:
            rest.rolled = [segment for segment in rest.rolled if segment not in segments]
        self.folder_changed = True

    def release(self, files: Files) -> None:
        """Close snapshots that no flush has synced."""
        for snapshot in self._snapshots:
            files.close(snapshot.fd)
        self._snapshots.clear()

    def _take_up_again(self, ticket: FlushTicket) -> None:
        for file in ticket.logs:
            file.is_dirty = True
        if ticket.rest is not None:
            self._rolled[:0] = ticket.rest.rolled
            self._snapshots[:0] = ticket.rest.snapshots
            self.folder_changed = True

    def _take_rest(self, folder: str, epochs: EpochCache, indexed: set[Segment]) -> Rest:
        rest = Rest(rolled=self._rolled, snapshots=self._snapshots, indexed=indexed)
        self._rolled, self._snapshots = [], []
        for segment in rest.rolled:
            rest.paths += (file.path for file in segment.index_files)
        if epochs.is_dirty:
            rest.epochs = (os.path.join(folder, LEADER_EPOCHS), encode_epochs(epochs))
            epochs.is_dirty = False
        rest.syncs_folder = self.folder_changed or self.is_new or rest.epochs is not None
        self.folder_changed = self.is_new = False
        return rest


def _add_log(logs: list[LogFile], file: LogFile) -> None:
    # Later writes make it dirty again; until then the pin keeps it open.
    file.pins += 1
    file.is_dirty = False
    logs.append(file)


def _add_segment(logs: list[LogFile], rest: Rest, segment: Segment) -> None:
    file = segment.file
    rest.pinned.append(file)
    if file.is_dirty:
        _add_log(logs, file)
    else:
        file.pins += 1
    unsynced = segment.txn_index.unsynced() if segment.txn_index is not None else None
    if segment.txn_index is not None and unsynced is not None:
        rest.txn_indexes.append((segment.txn_index, *unsynced))


def _base(segment: Segment) -> int:
    return segment.base_offset


def encode_epochs(epochs: EpochCache) -> bytes:
    return encode_lines(f"{epoch} {start}" for epoch, start in epochs.entries())
