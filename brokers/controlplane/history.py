"""The newest changes and the image they lead to, in the memory of one agent.

Pure. Every change is kept as the bytes that brokers get, which are made once; a reader that was
away goes on where it stopped, or begins anew where that is too long ago.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from brokers.cluster import link
from brokers.cluster.apply import apply
from brokers.cluster.changes import Change, Record
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.store import MetadataRegressed


class Unreadable(Exception):
    """A change that says nothing to this code, as one that a newer host has made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change: where it leads to, and its frames on the link."""

    position: Position
    encoded: bytes = field(repr=False)

    @property
    def change(self) -> Change:
        """The change as values; Unreadable where a part of it has no meaning here."""
        reader = link.FrameReader(link.decode_from_agent)
        records: list[Record] = []
        try:
            for frame in reader.feed(self.encoded):
                if not isinstance(frame, link.ChangeFrame):
                    raise Unreadable(f"{type(frame).__name__} stands where a change should")
                records += map(link.decode_record, frame.records)
        except link.MalformedFrame as malformed:
            raise Unreadable(str(malformed)) from malformed
        return Change(position=self.position, records=tuple(records))


class History:
    """See the module. One task's, or guarded by the loop: no method waits."""

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
        """Move on by one change; Unreadable where it cannot be applied, and nothing happens."""
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
            # In the order of their versions, the oldest first.
            oldest = self._entries.pop(next(iter(self._entries)))
            self._weight -= len(oldest.encoded)

    def forget_changes(self) -> None:
        """Drop all changes: every reader that is behind takes over the whole image."""
        self._entries.clear()
        self._weight = 0

    def next_after(self, position: Position) -> Entry | None:
        """Return the change that follows a position; None where it is the newest, or lost."""
        return self._entries.get(position.version + 1)

    def is_known(self, position: Position) -> bool:
        """Tell whether a reader at this position can go on from it, rather than begin anew.

        MetadataRegressed where this store never had that position.
        """
        if position.version > self.position.version:
            raise MetadataRegressed(position, self.position)
        if position == self.position:
            return position != Position()
        entry = self._entries.get(position.version)
        if entry is None:
            # Before all that is kept: whether it ever was there cannot be told any more, and the
            # reader takes over the whole image, which lets it delete nothing.
            return False
        if entry.position != position:
            raise MetadataRegressed(position, self.position)
        return True
