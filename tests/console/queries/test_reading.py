"""Loaded, empty, failed, stale: what a page has to show, and how old it is."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import Error, OperationalError

from console.queries import live
from console.queries.frame import Frame
from console.queries.live import Live
from console.queries.reading import MAX_KEPT, LastGood, Reading, State, reason_of
from tests.builders import live as rows
from tests.builders.live import CLUSTER_ID, Told


def read(
    kept: LastGood, query: Callable[[], list[int]], *, key: object = "page", at: float = 0
) -> Reading[list[int]]:
    return kept.read(key, query, is_empty=lambda data: not data, now=lambda: at)


def broken() -> list[int]:
    raise OperationalError("unable to open database file\nand more")


@pytest.mark.parametrize(("data", "state"), [([1], State.LOADED), ([], State.EMPTY)])
def test_an_answer_is_shown_as_it_is(data: list[int], state: State) -> None:
    reading = read(LastGood(), lambda: data)

    assert (reading.state, reading.data) == (state, data)


def test_no_answer_and_none_before_is_a_failure_with_its_reason() -> None:
    reading = read(LastGood(), broken)

    assert (reading.state, reading.data) == (State.FAILED, None)
    assert reading.reason == "unable to open database file"


def test_no_answer_after_one_is_the_old_one_with_its_age() -> None:
    kept = LastGood()
    read(kept, lambda: [1], at=1000)

    reading = read(kept, broken, at=1042.5)

    assert (reading.state, reading.data, reading.age_s) == (State.STALE, [1], 42)
    assert reading.read_at.timestamp() == 1000


def test_another_question_has_no_answer_to_fall_back_on() -> None:
    kept = LastGood()
    read(kept, lambda: [1], key="page 1")

    assert read(kept, broken, key="page 2").state is State.FAILED


def test_an_answer_ends_the_bad_hour() -> None:
    kept = LastGood()
    read(kept, lambda: [1])
    read(kept, broken)

    assert read(kept, lambda: [2]).data == [2]


def test_only_so_many_answers_are_kept_and_the_oldest_goes_first() -> None:
    kept = LastGood()
    for number in range(MAX_KEPT + 1):
        read(kept, lambda: [1], key=number)

    assert read(kept, broken, key=0).state is State.FAILED
    assert read(kept, broken, key=1).state is State.STALE


def test_a_mistake_of_ours_is_not_taken_for_a_database_that_is_away() -> None:
    with pytest.raises(ZeroDivisionError):
        read(LastGood(), lambda: [1 // 0])


def test_a_reason_fits_on_a_line() -> None:
    assert reason_of(Error()) == "Error"
    assert len(reason_of(Error("x" * 1000))) == 200


def test_what_is_kept_holds_no_tables_of_the_collector(told: Told) -> None:
    told.put(rows.topic("payments"))

    @dataclass(frozen=True)
    class Page:
        frame: Frame

    page = Page(Frame(shown=None, others=(), live=live.of(CLUSTER_ID)))
    kept = LastGood()

    def shown(query: Callable[[], Page]) -> Live | None:
        data = kept.read("page", query, is_empty=lambda _: False).data
        assert data is not None
        return data.frame.live

    def away() -> Page:
        raise OperationalError

    fresh, stale = shown(lambda: page), shown(away)
    assert fresh is not None
    assert stale is not None
    assert "payments" in fresh.snapshot.topics()
    assert (stale.snapshot.topics(), stale.told_at) == ({}, fresh.told_at)
