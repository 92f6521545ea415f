"""Records that a member has fetched: which are taken, held back, or belong to others now."""

import sys

from gateway.kafka.fetched_records import FetchedRecords
from gateway.kafka.values import Place, Record

ONE = Place(topic="orders", partition=1)
TWO = Place(topic="orders", partition=2)


def record(place: Place, offset: int) -> Record:
    return Record(
        topic=place.topic, partition=place.partition, offset=offset, key=None, value=b"12345"
    )


def fetched(*records: tuple[Place, int]) -> FetchedRecords:
    found = FetchedRecords()
    found.assign({ONE, TWO})
    for place, offset in records:
        found.add(record(place, offset))
    return found


def moved(
    records: FetchedRecords, *, most: int = 100, max_bytes: int = sys.maxsize
) -> list[Record]:
    found: list[Record] = []
    records.move(found, 0, most=most, max_bytes=max_bytes)
    return found


def test_records_are_taken_as_far_as_they_fit_and_one_always_does() -> None:
    records = fetched((ONE, 0), (ONE, 1), (ONE, 2))

    assert [each.offset for each in moved(records, max_bytes=1)] == [0]
    assert [each.offset for each in moved(records, most=1)] == [1]
    assert len(records) == 1


def test_paused_records_are_held_back_in_their_order() -> None:
    records = fetched((ONE, 0), (TWO, 0))
    records.pause({ONE})
    records.add(record(ONE, 1))

    assert [each.partition for each in moved(records)] == [2]
    records.resume({ONE})
    assert [each.offset for each in moved(records)] == [0, 1]


def test_records_of_a_revoked_partition_are_neither_kept_nor_taken_back() -> None:
    records = fetched((ONE, 0), (TWO, 0), (TWO, 1))
    records.begin()
    taken = moved(records, most=2)
    records.revoke({TWO})

    records.give_back(taken)

    assert records.deliver(taken) == {ONE: 1}
    assert [each.partition for each in moved(records)] == [1]


def test_all_is_read_once_every_running_partition_has_ended() -> None:
    records = fetched()
    records.pause({TWO})

    assert not records.has_read_all()
    records.end(ONE)
    assert records.has_read_all()
