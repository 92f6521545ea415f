"""The memory budget drops what was used longest ago first."""

from brokers.storage.memory_budget import MemoryBudget


class Table:
    """Something held that remembers whether it was dropped."""

    def __init__(self) -> None:
        self.is_loaded = True

    def unload(self) -> None:
        self.is_loaded = False


def held(budget: MemoryBudget, count: int, size: int) -> list[Table]:
    tables = [Table() for _ in range(count)]
    for table in tables:
        budget.hold(table, size)
    return tables


def test_everything_stays_while_it_fits() -> None:
    budget = MemoryBudget(300)

    tables = held(budget, 3, 100)

    assert all(table.is_loaded for table in tables)
    assert budget.held_bytes == 300


def test_the_longest_unused_is_dropped() -> None:
    budget = MemoryBudget(300)
    first, second, third = held(budget, 3, 100)
    budget.touch(first)

    budget.hold(fourth := Table(), 100)

    assert [t.is_loaded for t in (first, second, third, fourth)] == [True, False, True, True]
    assert budget.held_bytes == 300


def test_grown_index_is_counted_again_and_as_recently_used() -> None:
    budget = MemoryBudget(300)
    first, second = held(budget, 2, 100)

    budget.hold(first, 250)

    assert (first.is_loaded, second.is_loaded) == (True, False)
    assert budget.held_bytes == 250


def test_the_newest_stays_even_if_it_is_too_large_alone() -> None:
    budget = MemoryBudget(300)
    (small,) = held(budget, 1, 100)

    budget.hold(large := Table(), 1_000)

    assert (small.is_loaded, large.is_loaded) == (False, True)


def test_forgotten_index_is_not_counted() -> None:
    budget = MemoryBudget(300)
    (table,) = held(budget, 1, 100)

    budget.forget(table)
    budget.forget(table)

    assert budget.held_bytes == 0
    assert table.is_loaded
