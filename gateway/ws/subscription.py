"""Decides what one subscription of a socket does: its credit, its partitions, its records. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from gateway.access.grants import Names
from gateway.kafka.readers.values import Begin, End, Gap, News
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Place, Record
from gateway.rest.codes import ApiError, Code
from gateway.rest.records.question import Format
from gateway.ws import frames
from gateway.ws.actions import Action, Commit, Feed, Hold, Move, Say
from gateway.ws.frames import (
    MAX_CREDIT_BYTES,
    MAX_CREDIT_RECORDS,
    Ack,
    Credit,
    Pause,
    Resume,
    Seek,
)
from gateway.ws.openings import positions_of

# The records of one frame, and their size before they are formatted.
FRAME_RECORDS: Final = 500
FRAME_BYTES: Final = 128 * 1024


@dataclass(slots=True)
class Subscription:
    sid: str
    format: Format
    records: int
    # None if the client counts only records. A negative number is subtracted from the next credit.
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

    # --- frames of the client ----------------------------------------------------------------

    def handle(self, frame: Credit | Pause | Resume | Ack | Seek) -> list[Action]:
        """Return what a frame leads to. Raises ApiError for one that is refused."""
        match frame:
            case Credit():
                return self._add_credit(frame)
            case Pause() | Resume():
                return self._hold(frame)
            case Ack():
                return self._acknowledge(frame)
            case Seek():
                return self._seek(frame)

    def _add_credit(self, frame: Credit) -> list[Action]:
        records = self.records + frame.records
        size = (self.bytes or 0) + frame.bytes
        if records > MAX_CREDIT_RECORDS or size > MAX_CREDIT_BYTES:
            raise ApiError(
                Code.UNPROCESSABLE,
                f"the credit would be {records} records and {size} bytes;"
                f" at most {MAX_CREDIT_RECORDS} and {MAX_CREDIT_BYTES} are allowed:"
                " give credit as you process records",
            )
        self.records = records
        if self.bytes is not None:
            self.bytes = size
        return [Feed(self.sid)]

    def _hold(self, frame: Pause | Resume) -> list[Action]:
        self._require_open()
        is_paused = isinstance(frame, Pause)
        if self.group is not None and frame.partitions is None:
            self.is_paused = is_paused
            # Resuming all also resumes partitions that were paused by themselves.
            resumed = [] if is_paused else [Hold(self.sid, None, is_paused)]
            return [*resumed, Feed(self.sid)]
        places = None if frame.partitions is None else [one.place() for one in frame.partitions]
        self._require_places(places or ())
        return [Hold(self.sid, places, is_paused)]

    def _acknowledge(self, frame: Ack) -> list[Action]:
        self._require_open()
        if self.group is None:
            raise ApiError(
                Code.ILLEGAL_STATE,
                f"subscription {self.sid!r} has no group that would keep an offset",
            )
        offsets = {one.place(): one.offset for one in frame.offsets}
        self._require_places(offsets)
        return [Commit(self.sid, offsets)]

    def _seek(self, frame: Seek) -> list[Action]:
        """Move, and take nothing more until the move is reported."""
        self._require_open()
        starts = positions_of(frame.offsets)
        self._require_places(starts)
        self.is_open = False
        return [Move(self.sid, starts)]

    # --- partitions --------------------------------------------------------------------------

    def drop_unreadable(self, readable: Names) -> list[Place]:
        """Drop partitions of topics that match a pattern, but that may not be read any more."""
        if self.pattern is None or self.group is not None:
            return []
        lost = sorted(place for place in self.places if place.topic not in readable)
        self.places.difference_update(lost)
        return lost

    def assign(self, places: Collection[Place]) -> list[Action]:
        """Replace the partitions by those that a group assigns, and report the difference."""
        lost, added = self.places - set(places), set(places) - self.places
        self.places = set(places)
        actions: list[Action] = []
        if lost:
            actions.append(Say(frames.revoked(self.sid, sorted(lost), "rebalanced", is_over=False)))
        if added:
            actions.append(Say(frames.joined(self.sid, added)))
        return actions

    # --- records -----------------------------------------------------------------------------

    def send(self, news: Sequence[News], ends: Mapping[Place, int]) -> list[Action]:
        """Send what was read, and use the credit for it, whatever has happened meanwhile."""
        actions: list[Action] = []
        # They come before all other news of their partitions.
        if begun := {one.place: one.offset for one in news if isinstance(one, Begin)}:
            actions.append(Say(frames.assigned(self.sid, begun)))
        for place, some in groupby(news, key=place_of):
            actions += self._send_of(place, list(some), ends.get(place))
        return actions

    def _send_of(self, place: Place, news: Sequence[News], end: int | None) -> Iterator[Action]:
        for kind, some in groupby(news, key=type):
            if kind is Record:
                records = [one for one in some if isinstance(one, Record)]
                text = frames.batch(self.sid, records, self.format, end)
                self.records -= len(records)
                if self.bytes is not None:
                    self.bytes -= len(text)
                yield Say(text)
                continue
            for one in some:
                if isinstance(one, Gap):
                    yield Say(frames.gap(self.sid, one))
                elif isinstance(one, End):
                    self.places.discard(place)
                    reason = f"{one.name}: {one.message}"
                    yield Say(frames.revoked(self.sid, [place], reason, is_over=self.is_over))

    # --- checks ------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if not self.is_open:
            raise ApiError(
                Code.ILLEGAL_STATE,
                f"subscription {self.sid!r} is not assigned yet: wait for `assigned`",
            )

    def _require_places(self, places: Collection[Place]) -> None:
        for place in places:
            if place not in self.places:
                raise ApiError(
                    Code.NO_PARTITION, f"subscription {self.sid!r} does not read {place}"
                )


def place_of(news: News) -> Place:
    if isinstance(news, Record):
        return Place(topic=news.topic, partition=news.partition)
    return news.place
