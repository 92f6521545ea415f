"""How many may wait."""

from brokers.replication.waits import WaitRoom


def test_appends_are_bounded_by_number_and_by_bytes() -> None:
    room = WaitRoom(max_appends=2, max_append_bytes=100)
    assert not room.is_full_of_appends

    room.appends = 2
    assert room.is_full_of_appends

    room.appends, room.append_bytes = 0, 100
    assert room.is_full_of_appends


def test_fetches_are_bounded_by_number() -> None:
    room = WaitRoom(max_fetches=1)

    assert room.admit_fetch([1])
    assert not room.admit_fetch([1])
    room.dismiss_fetch([1])
    assert room.admit_fetch([1])


def test_fetches_are_bounded_by_what_they_watch() -> None:
    room = WaitRoom(max_watched=3)

    assert room.admit_fetch([1, 2])
    assert not room.admit_fetch([1, 2])
    assert room.admit_fetch([1])
    assert room.watched == 3
