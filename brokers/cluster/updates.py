"""Builds updates from an agent's messages, and queues those not yet taken.

Pure. A large message is decoded in steps, so that the caller can serve its clients in between. The
queue is bounded: a reader that falls too far behind gets the whole image instead of the changes
that it missed, with the same result.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from brokers.cluster.apply import apply
from brokers.cluster.change_bounds import MAX_RECORDS
from brokers.cluster.changes import Change, Record
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.link import (
    ChangeFrame,
    MalformedFrame,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotPart,
    decode_piece,
    decode_record,
)
from brokers.cluster.snapshot import ImageBuilder
from brokers.cluster.store import Update

# Changes that wait for a reader: seconds of a busy cluster, while the reader makes new folders.
MAX_WAITING: Final = 256

FeedMessage: TypeAlias = SnapshotBegin | SnapshotPart | SnapshotEnd | ChangeFrame


class Assembly:
    """Combines the parts of snapshots and changes. One for each connection."""

    __slots__ = ("_builder", "_position", "_records")

    def __init__(self) -> None:
        self._builder: ImageBuilder | None = None
        self._position = Position()
        self._records: list[Record] = []

    def take(self, message: FeedMessage) -> Iterator[Update | None]:
        """Process a message; yield None at places to pause, and complete updates."""
        match message:
            case SnapshotBegin():
                self._builder = ImageBuilder(message.cluster_id)
                self._position = message.position
            case SnapshotPart():
                builder = self._begun()
                for piece in message.pieces:
                    try:
                        builder.add(decode_piece(piece))
                    except AssertionError as error:
                        # The agent's message may be inconsistent.
                        raise MalformedFrame(str(error)) from error
                    yield None
            case SnapshotEnd():
                image = self._begun().image(message.position)
                if message.position != self._position:
                    raise MalformedFrame("a snapshot ends at another position than it began")
                self._builder = None
                yield image
            case ChangeFrame():
                yield from self._take_change(message)

    def _begun(self) -> ImageBuilder:
        if self._builder is None:
            raise MalformedFrame("a part of a snapshot that has not begun")
        return self._builder

    def _take_change(self, message: ChangeFrame) -> Iterator[Update | None]:
        if self._builder is not None:
            raise MalformedFrame("a change within a snapshot")
        if self._records and message.position != self._position:
            raise MalformedFrame("a change within another one")
        if len(self._records) + len(message.records) > MAX_RECORDS:
            raise MalformedFrame(f"a change of more than {MAX_RECORDS} records")
        self._position = message.position
        for record in message.records:
            self._records.append(decode_record(record))
            yield None
        if message.is_last:
            change = Change(position=message.position, records=tuple(self._records))
            self._records.clear()
            yield change


class Backlog:
    """Updates from a position on, in order, that have arrived and were not taken yet."""

    __slots__ = ("_image", "_most", "_waiting", "position")

    def __init__(self, after: Position, *, most: int = MAX_WAITING) -> None:
        # Of the newest update that has arrived.
        self.position = after
        self._most = most
        self._waiting: deque[Update] = deque()
        # At that position, once there was a whole one.
        self._image: ClusterImage | None = None

    @property
    def is_full(self) -> bool:
        """Whether no more can be put until one is taken, or until it begins again."""
        return self._image is None and len(self._waiting) >= self._most

    def begin_anew(self) -> None:
        """Drop all updates: the next one must be a whole image."""
        self._waiting.clear()
        self.position = Position()

    def put(self, update: Update) -> None:
        """Add an update; MalformedFrame if it does not follow the last one."""
        if isinstance(update, ClusterImage):
            self._waiting.clear()
            self._image = update
        else:
            if update.position.version != self.position.version + 1:
                raise MalformedFrame(
                    f"change {update.position.version} came after {self.position.version}"
                )
            if self._image is not None:
                try:
                    self._image = apply(self._image, update)
                except AssertionError as error:
                    # The agent's message may be inconsistent.
                    raise MalformedFrame(str(error)) from error
        self.position = update.position
        self._waiting.append(update)
        if self._image is not None and len(self._waiting) > self._most:
            self._waiting.clear()
            self._waiting.append(self._image)

    def take(self) -> Update | None:
        return self._waiting.popleft() if self._waiting else None
