"""Keeps the newest changes and the image that results from them, in the memory of one agent.

Pure. Every change is kept as the bytes that brokers get, encoded once; a reader that was away
continues where it stopped, or starts over if that is too long ago.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from brokers.cluster import link
from brokers.cluster.apply import apply
from brokers.cluster.changes import Change, Record
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.store import MetadataRegressed


class Unreadable(Exception):
    """A change that this code cannot read, such as one of a newer host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change: the position after it, and its frames on the link."""

    position: Position
    encoded: bytes = field(repr=False)

    @property
    def change(self) -> Change:
        """The change as values; Unreadable if this code does not know a part of it."""
        reader = link.FrameReader(link.decode_from_agent)
        records: list[Record] = []
        try:
            for frame in reader.feed(self.encoded):
                if not isinstance(frame, link.ChangeFrame):
                    raise Unreadable(f"{type(frame).__name__} found in the place of a change")
                records += map(link.decode_record, frame.records)
        except link.MalformedFrame as malformed:
            raise Unreadable(str(malformed)) from malformed
        return Change(position=self.position, records=tuple(records))


class History:
    """See the module. Belongs to one task, or is guarded by the loop: no method waits."""

    def __init__(
        self, image: ClusterImage, entries: Iterable[Entry], *, kept: int, kept_bytes: int
    ) -> None:
        self.image = image
        self._kept = kept
        self._kept_bytes = kept_bytes
        self._entries = {entry.position.version: entry for entry in entries}
        self._weight = sum(len(entry.encoded) for entry in self._entries.values())
        assert not self._entries or max(self._entries) == image.version, (
            f"changes up to {max(self._entries)} belong to an image of version {image.version}"
        )

    @property
    def position(self) -> Position:
        return self.image.position

    def append(self, entry: Entry) -> None:
        """Apply one change; if it cannot be applied, raise Unreadable and change nothing."""
        change = entry.change
        try:
            image = apply(self.image, change)
        except AssertionError as error:
            raise Unreadable(f"it does not follow: {error}") from error
        self.image = image
        self._entries[entry.position.version] = entry
        self._weight += len(entry.encoded)
        while len(self._entries) > 1 and (
            len(self._entries) > self._kept or self._weight > self._kept_bytes
        ):
            # In the order of versions, the oldest first.
            oldest = self._entries.pop(next(iter(self._entries)))
            self._weight -= len(oldest.encoded)

    def forget_changes(self) -> None:
        """Drop all changes, so that readers that are behind get the whole image."""
        self._entries.clear()
        self._weight = 0

    def next_after(self, position: Position) -> Entry | None:
        """Return the change after a position; None if the position is the newest, or too old."""
        return self._entries.get(position.version + 1)

    def is_known(self, position: Position) -> bool:
        """Tell whether a reader can continue from this position, rather than start over.

        MetadataRegressed if this store never had that position.
        """
        if position.version > self.position.version:
            raise MetadataRegressed(position, self.position)
        if position == self.position:
            return position != Position()
        entry = self._entries.get(position.version)
        if entry is None:
            # Older than all kept changes: it cannot be checked any more, and the reader gets the
            # whole image, which makes it delete nothing.
            return False
        if entry.position != position:
            raise MetadataRegressed(position, self.position)
        return True
