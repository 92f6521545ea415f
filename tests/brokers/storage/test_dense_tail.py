"""The newest batches of a log, and no more of them than agreed."""

from brokers.storage.dense_tail import TAIL_BATCHES, DenseTail
from brokers.storage.memory_budget import MemoryBudget

PLENTY = 1 << 30


def filled(tail: DenseTail, batches: int, *, records: int = 10, size: int = 100) -> DenseTail:
    start = len(tail.bases)
    for number in range(start, start + batches):
        tail.bases.append(number * records)
        tail.positions.append(number * size)
        if len(tail.bases) >= tail.limit:
            tail.grown()
    return tail


def test_it_never_holds_more_than_twice_the_batches_it_promises() -> None:
    tail = filled(DenseTail(MemoryBudget(PLENTY)), 3 * TAIL_BATCHES + 5)

    assert TAIL_BATCHES <= len(tail.bases) == len(tail.positions) < 2 * TAIL_BATCHES
    assert tail.bases[-1] == (3 * TAIL_BATCHES + 4) * 10


def test_the_tails_of_all_logs_share_a_budget() -> None:
    budget = MemoryBudget(64 * 16 * 3)

    tails = [filled(DenseTail(budget), 64) for _ in range(4)]

    assert [len(tail.bases) for tail in tails] == [0, 64, 64, 64]


def test_a_tail_that_was_dropped_grows_again() -> None:
    budget = MemoryBudget(64 * 16)
    first, second = (filled(DenseTail(budget), 64) for _ in range(2))

    filled(first, 64)

    assert (len(first.bases), len(second.bases)) == (64, 0)


def test_a_restart_forgets_everything() -> None:
    budget = MemoryBudget(PLENTY)
    tail = filled(DenseTail(budget), 200)

    tail.restart()

    assert not tail.bases
    assert not tail.positions
    assert budget.held_bytes == 0


def test_batches_below_an_offset_are_dropped() -> None:
    budget = MemoryBudget(PLENTY)
    tail = filled(DenseTail(budget), 200)

    tail.drop_below(1_495)

    assert (tail.bases[0], tail.positions[0], len(tail.bases)) == (1_500, 15_000, 50)
    assert budget.held_bytes == 50 * 16
    tail.drop_below(0)
    assert len(tail.bases) == 50
    tail.drop_below(5_000)
    assert (len(tail.bases), budget.held_bytes) == (0, 0)
