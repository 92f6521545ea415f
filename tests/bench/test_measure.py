"""Measurements keep the best of alternated rounds and tell where they were made."""

import pytest

from bench.measure import best_cpu, geometric_mean, machine, rss_bytes


def test_contenders_take_turns() -> None:
    calls: list[str] = []

    best = best_cpu(
        {"one": lambda: calls.append("1"), "two": lambda: calls.append("2")},
        rounds=3,
        round_seconds=0.0001,
    )

    turns = [name for name, before in zip(calls[1:], calls, strict=False) if name != before]
    assert set(best) == {"one", "two"}
    assert len(turns) >= 6


@pytest.mark.alone
def test_more_work_costs_more() -> None:
    best = best_cpu({"small": lambda: sum(range(100)), "large": lambda: sum(range(10_000))})

    assert best["large"] > 10 * best["small"]


def test_the_mean_of_ratios_is_geometric() -> None:
    assert geometric_mean([0.5, 2.0, 1.0]) == pytest.approx(1.0)


def test_a_figure_comes_with_its_machine() -> None:
    assert {"cpu", "cores", "memory_gib", "system", "python"} == set(machine())
    assert rss_bytes() > 1_000_000
