"""Replaces segments by cleaned ones, in steps that a crash may interrupt anywhere.

Handles names and their order only. A group of old segments is replaced like this,
and the groups of one cleaning one after the other, oldest first, so that no tombstone goes before
the values that it hides:

1. `.cleaned` becomes `.swap`, the log last: from there on a start finishes the other steps;
2. the folder is synced, in a thread;
3. the old files become `.deleted`, and the log reads from the new one, still called `.swap`;
4. the folder is synced again, so that no old file can come back beside the new one;
5. `.swap` files get their final names, the log last.

Before the log is truncated, the swap is completed or dropped: otherwise a later start would finish
it, and bring the truncated records back.
"""

from collections.abc import Sequence
from contextlib import suppress

from brokers.storage import names
from brokers.storage.cleaning import Cleaned, drop_leftovers
from brokers.storage.compaction import Cleaning
from brokers.storage.deletions import Deletions
from brokers.storage.errors import is_refusal
from brokers.storage.fsync import Flushes, FlushTicket, Rest
from brokers.storage.producer_notes import ProducerNotes
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments


class Swaps:
    """The running swap of one log, if there is one. Belongs to its folder."""

    __slots__ = (
        "_deletions",
        "_flushes",
        "_folder",
        "_handles",
        "_new",
        "_notes",
        "_old",
        "_placed",
        "_segments",
        "cuts",
        "ticket",
    )

    def __init__(
        self,
        folder: str,
        segments: Segments,
        deletions: Deletions,
        flushes: Flushes,
        notes: ProducerNotes,
    ) -> None:
        self._folder = folder
        self._segments = segments
        self._handles = segments.active.handles
        self._deletions = deletions
        self._flushes = flushes
        self._notes = notes
        self._new: Segment | None = None  # under .swap, beside those that it will replace
        self._old: Sequence[Segment] = ()
        self._placed: list[Segment] = []  # in the log, and still under .swap
        self.cuts = 0  # how often the log was truncated
        self.ticket: FlushTicket | None = None  # the running one

    def begin(self, cleaning: Cleaning, group: Cleaned) -> FlushTicket | None:
        """Do steps 1 and 2; return None and remove the files if the log has changed since."""
        assert self.ticket is None, f"{self._folder} has a swap under way"
        self.settle()
        old = self._old_ones(cleaning, group)
        if old is None:
            drop_leftovers(self._handles.files, self._folder)
            return None
        # On restart, recovery treats a `.swap` above a `.cleaned` file as not yet applied.
        drop_leftovers(self._handles.files, self._folder, below=group.base)
        new = Segment(self._handles, self._folder, group.base, marker=names.CLEANED)
        new.size, new.max_timestamp = group.size, group.max_timestamp
        new.max_timestamp_offset = group.max_timestamp_offset
        self._new, self._old = new, old
        try:
            new.rename(names.SWAP)
        except OSError as error:
            if is_refusal(error) or isinstance(error, FileNotFoundError):
                self._drop()
            if isinstance(error, FileNotFoundError):
                return None
            raise
        return self._sync()

    def exchange(self, ticket: FlushTicket, due_ms: int) -> int | None:
        """Do step 3 for a ticket that has run; return the file's end, None if the swap gave way.

        The old segments' files are unlinked from `due_ms` on. `sync` must follow.
        """
        self._take_back(ticket)
        new, old = self._new, self._old
        if new is None:
            return None
        first = self._segments.index_of(new.base_offset)
        if not self._stand_at(first, old):
            self._drop()
            return None
        try:
            self._deletions.add(old, due_ms)
        except OSError as error:
            if is_refusal(error):
                self._drop()
            raise
        self._segments.replace(first, len(old), new)
        self._new, self._old = None, ()
        self._placed.append(new)
        self._flushes.removed(old)
        self._notes.indexed.difference_update(old)
        # The producers' state at the new one's beginning stays valid.
        for segment in old[1:]:
            with suppress(FileNotFoundError):
                self._handles.files.unlink(self._notes.snapshots.path(segment.base_offset))
        return self._segments.end_of(first, new.base_offset)

    def sync(self) -> FlushTicket:
        """Do step 4."""
        return self._sync()

    def finish(self, ticket: FlushTicket) -> None:
        """Do step 5 for a ticket that has run."""
        self._take_back(ticket)
        self._name_placed()

    def settle(self) -> None:
        """Complete or drop a half-done swap, and wait for the disk."""
        if self._new is None and not self._placed:
            return
        self._drop()
        self._handles.sync_folder(self._folder)
        self._name_placed()

    def give_way(self) -> None:
        """Settle before the log is cut: no start may finish a swap from before."""
        self.cuts += 1
        self.settle()

    def _old_ones(self, cleaning: Cleaning, group: Cleaned) -> Sequence[Segment] | None:
        """Return the segments that a group replaces, if they have not changed."""
        if cleaning.cuts != self.cuts:
            return None
        bases = set(group.bases)
        cleaned = zip(cleaning.segments, cleaning.sizes, strict=True)
        old = [(segment, size) for segment, size in cleaned if segment.base_offset in bases]
        if [segment.base_offset for segment, _ in old] != list(group.bases):
            return None
        if any(segment.size != size for segment, size in old):
            return None
        segments = [segment for segment, _ in old]
        first = self._segments.index_of(group.base)
        return segments if self._stand_at(first, segments) else None

    def _stand_at(self, first: int, segments: Sequence[Segment]) -> bool:
        """Tell whether these are in the log, one behind the other, and none of them is active."""
        if first + len(segments) >= len(self._segments):
            return False
        return all(self._segments[first + at] is one for at, one in enumerate(segments))

    def _sync(self) -> FlushTicket:
        self.ticket = FlushTicket(self._handles.files, self._folder, 0, Rest(syncs_folder=True))
        return self.ticket

    def _take_back(self, ticket: FlushTicket) -> None:
        assert ticket is self.ticket, "the ticket is not this swap's"
        assert ticket.is_done, "the ticket has not run"
        self.ticket = None
        if ticket.failure is not None:
            raise self._handles.fail(ticket.failure)
        if ticket.refusal is not None:
            raise ticket.refusal

    def _drop(self) -> None:
        """Unlink files that have not replaced anything yet, the log first: it makes them count."""
        if self._new is not None:
            # Its files may have either name.
            drop_leftovers(self._handles.files, self._folder)
            for marker in (names.SWAP, names.CLEANED):
                stale = Segment(self._handles, self._folder, self._new.base_offset, marker=marker)
                stale.remove()
            self._new, self._old = None, ()
            self._flushes.folder_changed = True

    def _name_placed(self) -> None:
        while self._placed:
            segment = self._placed[0]
            # A segment that was deleted meanwhile has another name already.
            if any(segment is one for one in self._segments):
                segment.rename("")
                self._flushes.folder_changed = True
            del self._placed[0]
