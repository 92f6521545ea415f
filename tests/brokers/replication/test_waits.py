"""How many may wait."""

from brokers.replication.waits import MAX_FETCH_WAITS_EACH, WaitRoom


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


def test_one_connection_takes_a_few_places_and_no_more() -> None:
    room, greedy, modest = WaitRoom(), object(), object()

    admitted = [room.admit_fetch([1], greedy) for _ in range(MAX_FETCH_WAITS_EACH + 1)]

    assert admitted == [True] * MAX_FETCH_WAITS_EACH + [False]
    assert room.admit_fetch([1], modest)
    room.dismiss_fetch([1], greedy)
    assert room.admit_fetch([1], greedy)
    assert not room.admit_fetch([1], greedy)


def test_a_connection_that_waits_for_nothing_is_forgotten() -> None:
    room, connection = WaitRoom(), object()
    for _ in range(2):
        room.admit_fetch([1], connection)
    for _ in range(2):
        room.dismiss_fetch([1], connection)

    assert room._fetches_by == {}  # noqa: SLF001  # what it holds is the point
    assert (room.fetches, room.watched) == (0, 0)
