"""Whose turn it is to search on a broker."""

import threading

import pytest

from gateway.kafka.readers.slots import Slots


class Gone(Exception):
    pass


def test_as_many_as_there_are_places_are_let_in_at_once() -> None:
    slots, ahead = Slots(per_broker=2), list[int]()

    with (
        slots.place("a", waits=ahead.append),
        slots.place("a", waits=ahead.append),
        slots.place("b", waits=ahead.append),
    ):
        pass

    assert ahead == [0, 0, 0]


def test_who_comes_later_waits_and_is_told_how_many_are_in_front() -> None:
    slots, ahead, come, inside = Slots(per_broker=1), list[int](), threading.Event(), list[str]()

    def waits(number: int) -> None:
        ahead.append(number)
        come.set()

    def wait() -> None:
        with slots.place("a", waits=waits):
            inside.append("second")

    with slots.place("a", waits=lambda _: None):
        thread = threading.Thread(target=wait)
        thread.start()
        come.wait()
        inside.append("first")
    thread.join()

    assert inside == ["first", "second"]
    assert ahead[0] == 1
    assert ahead[-1] == 0


def test_who_gives_up_leaves_the_line() -> None:
    slots = Slots(per_broker=1)

    def leaves(_ahead: int) -> None:
        raise Gone

    with (
        slots.place("a", waits=lambda _: None),
        pytest.raises(Gone),
        slots.place("a", waits=leaves),
    ):
        pass

    assert slots._lines == {}  # noqa: SLF001 - nothing grows
