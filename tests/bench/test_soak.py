"""Rest is the CPU between two looks at the same processes."""

import os

import pytest

from bench.soak import Look, Rest, look_at, table


def looked(cpu_seconds: float) -> Look:
    return Look(cpu_seconds=cpu_seconds, rss_bytes=40_000_000, descriptors=10)


REST = Rest(
    before={1: looked(5.0), 2: looked(0.5)}, after={1: looked(5.2), 2: looked(0.6)}, seconds=20.0
)


def test_cpu_is_a_share_of_one_core() -> None:
    assert REST.percent(1) == pytest.approx(1.0)
    assert REST.percent_in_all() == pytest.approx(1.5)


def test_the_whole_is_judged_and_its_parts_are_told() -> None:
    total, first, second = table(REST, {1: "agent"}).rows

    assert total[:4] == ("all together", pytest.approx(1.5), "≤ 3", "yes")
    assert first[0] == "agent"
    assert second[0] == "child 2"


def test_a_look_finds_this_process() -> None:
    mine = look_at(os.getpid())[os.getpid()]

    assert mine.descriptors > 0
    assert mine.rss_bytes > 1_000_000
