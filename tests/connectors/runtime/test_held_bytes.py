"""The memory that tasks of one process hold together."""

import random

from connectors.runtime.held_bytes import Budget, Holder


def some(count: int, *, enough: int = 100, most: int = 150) -> list[Holder]:
    budget = Budget(enough=enough, most=most)
    return [Holder(budget) for _ in range(count)]


def test_nobody_is_asked_while_there_is_enough() -> None:
    first, second = some(2)

    assert (first.hold(60), second.hold(40)) == (0, 0)


def test_the_one_that_holds_most_is_asked_when_it_runs_next() -> None:
    small, large = some(2)
    large.hold(80)

    assert small.hold(30) == 0
    assert large.is_asked
    assert large.hold(80) == 10
    assert not large.is_asked


def test_the_largest_is_asked_at_once_where_it_is_the_one_that_runs() -> None:
    small, large = some(2)
    small.hold(30)

    assert large.hold(90) == 20
    assert large.hold(70) == 0


def test_whoever_runs_lets_go_where_all_is_used_up() -> None:
    small, large = some(2)
    large.hold(100)

    assert small.hold(51) == 51


def test_what_is_let_go_is_nobodys_any_more() -> None:
    first, second = some(2)
    first.hold(90)
    first.let_go()

    assert second.hold(100) == 0
    assert not first.is_asked


def test_tasks_that_do_as_asked_never_hold_more_than_all() -> None:
    seed = 20_260_731
    chance = random.Random(seed)
    holders = some(200, enough=10_000, most=15_000)
    held = dict.fromkeys(range(200), 0)

    for _ in range(5_000):
        number = chance.randrange(200)
        held[number] += chance.randrange(300)
        held[number] -= holders[number].hold(held[number])
        assert holders[number].hold(held[number]) >= 0
        assert sum(held.values()) <= 15_000, seed
