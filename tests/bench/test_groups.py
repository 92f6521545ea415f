"""The tables of the groups suite, with counts so small that only their shape means anything."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import groups
from bench.broker_targets import Target
from bench.groups import Size, Work, largest_new
from bench.measure import Table
from tests.fakes.broker_thread import broker_beside

TINY = Size(members=3, crowd=4, partitions=3, connections=3, seconds=0.2, rounds=1, idle_groups=10)


@pytest.fixture
def _beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker of the suite is one of this process."""

    @contextmanager
    def own(defaults: Mapping[str, str] | None = None) -> Iterator[tuple[Target, float]]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        soon = {groups.DELAY: "100", **(defaults or {})}
        with broker_beside(folder, defaults=soon) as beside:
            host, port = beside.running.host, beside.running.port
            yield Target(name="beside", host=host, port=port, pid=os.getpid()), 0.0

    monkeypatch.setattr(groups, "own_broker", own)


def figures(table: Table) -> dict[object, dict[str, object]]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


@pytest.mark.slow
@pytest.mark.usefixtures("_beside")
def test_crowds_settle_and_stalls_are_felt() -> None:
    found = figures(groups.joins_table(TINY))

    assert found["3 classic members, after the delay, s"]["met"] == "yes"
    assert found["3 consumer members, in all, s"]["met"] == "yes"
    stall = found["… the longest wait that a client felt, ms"]["figure"]
    assert isinstance(stall, float)
    assert stall > 0


@pytest.mark.slow
@pytest.mark.usefixtures("_beside")
def test_steady_work_has_a_cost_and_a_rate_beside_the_bare_loop() -> None:
    table = groups.steady_table(TINY)

    assert [row[0] for row in table.rows] == [
        *(work.name for work in groups.steady_works(TINY.connections)),
        groups.BARE,
    ]
    for row in figures(table).values():
        for column in ("CPU ms/1,000", "a second of a core", "seen/s", "p50 µs", "p99 µs"):
            figure = row[column]
            assert isinstance(figure, float)
            assert figure > 0


@pytest.mark.slow
@pytest.mark.usefixtures("_beside")
def test_idle_groups_are_weighed() -> None:
    found = figures(groups.idle_table(TINY))

    assert set(found) == {"10 classic groups, MB", "10 consumer groups, MB"}


@pytest.mark.parametrize(
    ("cpu_us", "met"), [(60.0, "yes"), (60.1, "NO"), (66.7, "NO"), (10.0, "yes")]
)
def test_heartbeats_are_held_to_both_targets(cpu_us: float, met: str) -> None:
    work = Work(name="", kind="", groups=1, least=15_000, cpu_ms=60.0)

    assert work.judged(cpu_us) == met


def test_commits_are_held_to_what_a_core_can_do() -> None:
    work = Work(name="", kind="", groups=1, least=8_000)

    assert work.judged(125.0) == "yes"
    assert work.judged(125.1) == "NO"


def test_the_largest_new_delay_is_that_of_its_bucket() -> None:
    before = {1.0: 5.0, 2.0: 6.0, 4.0: 6.0, 8.0: 9.0, float("inf"): 9.0}
    after = {1.0: 8.0, 2.0: 9.0, 4.0: 10.0, 8.0: 13.0, float("inf"): 13.0}

    assert largest_new(before, after) == 4.0
    assert largest_new(before, before) == 0.0
    assert largest_new({}, {}) == 0.0


def test_the_disk_is_asked_for_its_own_figure() -> None:
    assert groups.syncs_a_second(5) > 0
