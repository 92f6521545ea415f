"""The loop suite, with counts so small that only its shape means anything."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import loop
from bench.blaster import Job
from bench.broker_targets import Target
from bench.bystander import Felt, stand_by
from bench.loop import Size, fill_and_damage, judged, sessions_ended
from brokers.storage.errors import StorageCorrupt
from tests.builders.logs import open_log
from tests.fakes.broker_thread import BesideBroker, broker_beside

TINY = Size(produces=3, headers=600, batches=2, records=600, consumer_seconds=0.1)


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[BesideBroker]:
    with broker_beside(tmp_path) as running:
        yield running


def target(beside: BesideBroker) -> Target:
    running = beside.running
    return Target(name="beside", host=running.host, port=running.port, pid=None, is_ours=True)


class OneBroker:
    """A home whose only broker is one of this process."""

    def __init__(self, folder: Path, broker: Target) -> None:
        self.folder = folder
        self.broker = broker

    def first_broker(self) -> Target:
        return self.broker


@pytest.mark.slow
def test_each_scenario_without_a_restart_has_its_row(
    tmp_path: Path, beside: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def calm(_broker: Target) -> Iterator[Felt]:
        yield Felt(requests=1)

    monkeypatch.setattr(loop, "_beside", calm)
    names = ["600 pipelined costly produces", "ListOffsets over 200 batches that lie"]
    monkeypatch.setattr(loop, "SCENARIOS", {name: loop.SCENARIOS[name] for name in names})

    table = loop.loop_table(OneBroker(tmp_path, target(beside)), TINY)  # type: ignore[arg-type]

    assert [row[0] for row in table.rows] == ["nothing else", *names]
    assert [row[-1] for row in table.rows] == ["yes"] * 3


@pytest.mark.slow
def test_the_active_client_works_until_it_is_told_to_end(beside: BesideBroker) -> None:
    target(beside).make_topic(loop.ACTIVE, 1, durability="replicated")
    reading, writing = os.pipe()
    job = Job(
        host=beside.running.host,
        port=beside.running.port,
        kind="produce",
        connections=1,
        seconds=0.0,
        topic=loop.ACTIVE,
        rate=1_000,
    )
    os.write(writing, b"x")

    felt = stand_by(job, reading)

    assert felt.requests >= 1
    assert 0 < felt.p50_ms <= felt.p99_ms <= felt.max_ms
    os.close(reading)
    os.close(writing)


def test_a_damaged_segment_is_met_where_the_scenario_says(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"

    offset = fill_and_damage(folder, 64 * 1024)

    log = open_log(folder, is_clean=True, recovery_point=1)
    log.read(offset - 1, max_bytes=1).release()
    with pytest.raises(StorageCorrupt):
        log.read(offset, max_bytes=1)
    log.abandon()


@pytest.mark.parametrize(
    ("p99", "longest", "ended", "met"),
    [(10, 25, 0, "yes"), (10.1, 25, 0, "NO"), (10, 25.1, 0, "NO"), (1, 1, 1, "NO")],
)
def test_a_row_is_held_to_all_targets(p99: float, longest: float, ended: int, met: str) -> None:
    assert judged(Felt(p99_ms=p99, max_ms=longest), ended) == met


def test_sessions_that_ended_are_counted_in_all_logs(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "agent.log").write_text('{"event": "broker.session_ended"}\n' * 2, encoding="utf-8")
    (logs / "broker-1.log").write_text('{"event": "x"}\n', encoding="utf-8")

    assert sessions_ended(tmp_path) == 2
