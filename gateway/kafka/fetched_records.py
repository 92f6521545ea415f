"""Keeps the records that a group's member has fetched and that its caller has not taken yet.

Pure. Knows which partitions the member has, which of them are paused or read to their end, and up
to which offset their records are delivered.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from gateway.kafka.values import Place, Record


class FetchedRecords:
    """One member's partitions and records, in the library's order."""

    def __init__(self) -> None:
        self.assigned: set[Place] = set()
        # The next offset of each partition, after the delivered records.
        self.next: dict[Place, int] = {}
        self._ahead: deque[Record] = deque()
        # Partitions whose end was seen since their assignment.
        self._ended: set[Place] = set()
        # Partitions revoked since records were last taken: these have another owner.
        self._gone: set[Place] = set()
        # Paused partitions, and their fetched records that are not taken yet.
        self._paused: set[Place] = set()
        self._held: dict[Place, deque[Record]] = {}

    def __len__(self) -> int:
        """Return the number of records that can be taken."""
        return len(self._ahead)

    # --- partitions ----------------------------------------------------------------------------

    def assign(self, places: Iterable[Place]) -> None:
        self.assigned |= set(places)

    def revoke(self, places: Collection[Place]) -> None:
        gone = set(places)
        self.assigned -= gone
        self._gone |= gone
        self._paused -= gone
        self.drop(gone)

    def end(self, place: Place) -> None:
        self._ended.add(place)

    def has_read_all(self) -> bool:
        """Return whether each partition that is not paused was read to its end."""
        return bool(self.assigned) and self.assigned - self._paused <= self._ended

    def drop(self, places: Collection[Place]) -> None:
        """Forget records and positions of partitions."""
        self._ahead = deque(each for each in self._ahead if _place(each) not in places)
        self._ended.difference_update(places)
        for place in places:
            self.next.pop(place, None)
            self._held.pop(place, None)

    def running(self, places: Collection[Place]) -> set[Place]:
        """Return those of these partitions that are assigned and not paused."""
        return self.assigned.intersection(places) - self._paused

    def find_paused(self, places: Collection[Place]) -> set[Place]:
        """Return those of these partitions that are paused."""
        return self._paused.intersection(places)

    def pause(self, places: Collection[Place]) -> None:
        """Hold back the records of partitions until `resume`."""
        self._paused |= set(places)
        kept: deque[Record] = deque()
        for record in self._ahead:
            place = _place(record)
            (self._held.setdefault(place, deque()) if place in places else kept).append(record)
        self._ahead = kept

    def resume(self, places: Collection[Place]) -> None:
        self._paused.difference_update(places)
        for place in places:
            self._ahead.extendleft(reversed(self._held.pop(place, deque())))

    # --- records -------------------------------------------------------------------------------

    def add(self, record: Record) -> None:
        """Keep a fetched record; one of a revoked partition belongs to its next owner."""
        place = _place(record)
        if place in self.assigned:
            self._queue_of(place).append(record)

    def begin(self) -> None:
        """Note that the caller takes records: what it gives back later was assigned from now on."""
        self._gone.clear()

    def move(self, found: list[Record], size: int, *, most: int, max_bytes: int) -> int:
        """Append the records that fit to `found`, of `size` bytes; return the new size.

        The first one always fits.
        """
        while self._ahead and len(found) < most:
            more = len(self._ahead[0].key or b"") + len(self._ahead[0].value or b"")
            if found and size + more > max_bytes:
                break
            found.append(self._ahead.popleft())
            size += more
        return size

    def give_back(self, records: Sequence[Record]) -> None:
        """Put undelivered records back, except those of partitions that others now read."""
        for record in reversed(records):
            place = _place(record)
            if place not in self._gone:
                self._queue_of(place).appendleft(record)

    def deliver(self, records: Iterable[Record]) -> Mapping[Place, int]:
        """Count records as read; return the next offset of each of their partitions."""
        last = {_place(record): record.offset + 1 for record in records}
        last = {place: offset for place, offset in last.items() if place not in self._gone}
        self.next |= last
        return last

    def _queue_of(self, place: Place) -> deque[Record]:
        return self._held.setdefault(place, deque()) if place in self._paused else self._ahead


def _place(record: Record) -> Place:
    return Place(topic=record.topic, partition=record.partition)
