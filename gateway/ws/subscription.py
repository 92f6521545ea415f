"""Holds what one subscription of a socket reads, and how much it may. Pure."""

from dataclasses import dataclass, field
from typing import Final

from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Place
from gateway.rest.records.question import Format

# The records of one frame, and their size before they are formatted.
FRAME_RECORDS: Final = 500
FRAME_BYTES: Final = 128 * 1024


@dataclass(slots=True)
class Subscription:
    sid: str
    format: Format
    records: int
    # None if the client counts only records; a negative number is owed.
    bytes: int | None
    topics: frozenset[str]
    group: str | None = None
    # The pattern, among topics that the caller may read; `topics` are those of a group.
    pattern: TopicPattern | None = None
    # Only for a group; without one, the reading itself pauses partitions.
    is_paused: bool = False
    places: set[Place] = field(default_factory=set)
    is_open: bool = False

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more can arrive: a group, or a pattern, may still add partitions."""
        has_more_to_come = self.group is not None or self.pattern is not None
        return not self.places and not has_more_to_come

    @property
    def allowance(self) -> tuple[int, int] | None:
        """Return how many records and bytes may be taken for it now."""
        if not self.is_open or self.is_paused or self.records <= 0:
            return None
        size = FRAME_BYTES if self.bytes is None else min(self.bytes, FRAME_BYTES)
        return (min(self.records, FRAME_RECORDS), size) if size > 0 else None
