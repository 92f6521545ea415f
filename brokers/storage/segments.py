"""The segments of one log, oldest first: finds the segment of an offset.

Knows order and sizes, not what is appended or why something is deleted. A log has at least one
segment, and only the last one, the active one, grows.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from brokers.storage.headers import NO_BOUND
from brokers.storage.segment import Segment


class Segments:
    """Not thread-safe; belongs to its log."""

    __slots__ = ("_bases", "_segments")

    def __init__(self, segments: Sequence[Segment]) -> None:
        assert segments, "a log has at least one segment"
        self._bases: list[int] = []
        self._segments: list[Segment] = []
        for segment in segments:
            self.append(segment)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def append(self, segment: Segment) -> None:
        """Add the new active segment, which begins where the old one ends."""
        if self._segments:
            last = self._segments[-1]
            assert segment.base_offset > last.base_offset, "segments are in order"
            segment.start = last.start + last.size
            last.end_offset = segment.base_offset
        self._bases.append(segment.base_offset)
        self._segments.append(segment)

    def index_of(self, offset: int) -> int:
        """Return the index of the last segment that begins at or before `offset`, or 0."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def holding(self, offset: int) -> Segment:
        """Return the segment in which to look for `offset`."""
        return self._segments[max(0, bisect_right(self._bases, offset) - 1)]

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """Yield the segments that may hold `offset` or later ones, oldest first."""
        return iter(self._segments[self.index_of(offset) :])

    def end_of(self, index: int, log_end: int) -> int:
        """Return the offset behind the segment: the start of the next one, or the log's end."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else log_end

    def take_oldest(self, count: int) -> list[Segment]:
        """Remove and return the oldest ones; the active one stays."""
        assert count < len(self._segments), f"{count} of {len(self._segments)} segments taken"
        taken = self._segments[:count]
        del self._segments[:count], self._bases[:count]
        return taken

    def replace(self, first: int, count: int, new: Segment) -> None:
        """Replace `count` old segments, none of them active, by one.

        Later segments keep their positions in the virtual file of all segments; earlier ones move,
        so that the sizes add up.
        """
        behind = first + count
        assert count > 0, "nothing is replaced"
        assert behind < len(self._segments), "the active segment stays"
        assert new.base_offset == self._bases[first], f"{new.base_offset} begins elsewhere"
        new.end_offset = self._bases[behind]
        self._segments[first:behind] = [new]
        self._bases[first:behind] = [new.base_offset]
        start = self._segments[first + 1].start
        for segment in reversed(self._segments[: first + 1]):
            start -= segment.size
            segment.start = start

    def take_newest(self, keep: int) -> list[Segment]:
        """Remove and return all but the `keep` oldest ones, the newest first."""
        taken = self._segments[keep:][::-1]
        del self._segments[keep:], self._bases[keep:]
        if self._segments:
            self.active.end_offset = NO_BOUND
        return taken
