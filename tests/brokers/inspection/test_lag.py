"""The board of lags, over brokers that say what a test makes up, and over a real one."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from brokers.inspection import lag
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.inspection.lag import LagBoard, Place
from tests.fakes.broker import SECRET, running_broker

NOW_MS = 1_700_000_000_000


class MadeUpBroker:
    """Its feed is what the test last said; the first one is a snapshot."""

    def __init__(self, name: str = "b1", **rows: Any) -> None:
        self.name = name
        self.ms = NOW_MS
        self.told: dict[str, Any] = {"kind": "snapshot", "rows": [], **rows}
        self.records: dict[Place, int] = {}
        self.asked: list[list[Place]] = []
        self.is_down = False

    def step(self, **rows: Any) -> None:
        self.told = {"kind": "steps", "steps": [{"rows": [], **rows}]}

    def feed(self) -> Mapping[str, Any]:
        self._require_life()
        return {"ms": self.ms, **self.told}

    def times(self, places: Sequence[Place]) -> list[int | str | None]:
        self._require_life()
        self.asked.append(list(places))
        return [self.records.get(place, "not led here") for place in places]

    def _require_life(self) -> None:
        if self.is_down:
            raise InspectionFailed(f"{self.name} did not answer")


def partition(topic: str, index: int, start: int, end: int) -> list[Any]:
    return [topic, index, start, end, end, 1000]


def commit(group: str, topic: str, index: int, offset: int) -> list[Any]:
    return [group, topic, index, offset, 0, NOW_MS - 5]


def board_of(*brokers: MadeUpBroker) -> LagBoard:
    board = LagBoard(brokers)
    board.refresh()
    return board


def found(board: LagBoard) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    return {
        (one.group, one.topic, one.partition): (one.records, one.ms, one.is_lost)
        for one in board.lags()
    }


def test_a_lag_is_counted_to_the_high_watermark_and_since_the_next_record_was_written() -> None:
    broker = MadeUpBroker(
        rows=[partition("orders", 0, 0, 20), partition("orders", 1, 0, 7)],
        commits=[commit("g", "orders", 0, 15), commit("g", "orders", 1, 7)],
    )
    broker.records["orders", 0, 15] = NOW_MS - 5_000

    board = board_of(broker)

    assert found(board) == {
        ("g", "orders", 0): (5, 5_000, False),
        ("g", "orders", 1): (0, 0, False),
    }
    behind = board.lags()[0]
    assert (behind.committed, behind.end, behind.commit_ms) == (15, 20, NOW_MS - 5)
    assert broker.asked == [[("orders", 0, 15)]]


def test_what_was_deleted_or_cut_is_counted_from_what_is_there() -> None:
    broker = MadeUpBroker(
        rows=[partition("orders", 0, 10, 20)],
        commits=[commit("lost", "orders", 0, 3), commit("beyond", "orders", 0, 25)],
    )
    broker.records["orders", 0, 10] = NOW_MS - 900

    assert found(board_of(broker)) == {
        ("lost", "orders", 0): (10, 900, True),
        ("beyond", "orders", 0): (0, 0, False),
    }


def test_a_partition_that_nobody_leads_has_no_lag_that_could_be_told() -> None:
    broker = MadeUpBroker(commits=[commit("g", "orders", 0, 3)])

    board = board_of(broker)

    assert found(board) == {("g", "orders", 0): (None, None, False)}
    assert board.lags()[0].end is None
    assert broker.asked == []


def test_coordinator_and_leader_may_be_two_brokers_and_the_leader_is_asked() -> None:
    coordinator = MadeUpBroker("coordinator", commits=[commit("g", "orders", 0, 1)])
    leader = MadeUpBroker("leader", rows=[partition("orders", 0, 0, 3)])
    leader.ms = NOW_MS + 100
    leader.records["orders", 0, 1] = NOW_MS

    board = board_of(coordinator, leader)

    assert found(board) == {("g", "orders", 0): (2, 100, False)}
    assert coordinator.asked == []


def test_steps_change_what_a_snapshot_told() -> None:
    broker = MadeUpBroker(
        rows=[partition("orders", 0, 0, 5)],
        groups=[["g", "classic", "Stable", 3, 1, 0], ["h", "consumer", "Empty", 1, 0, 0]],
        commits=[commit("g", "orders", 0, 5), commit("h", "orders", 0, 5)],
    )
    board = board_of(broker)
    broker.step(
        rows=[partition("orders", 0, 0, 9)],
        groups=[["g", "classic", "Empty", 4, 0, 1]],
        groups_gone=["h"],
        commits=[commit("g", "orders", 0, 8)],
        commits_gone=[["h", "orders", 0]],
    )
    broker.records["orders", 0, 8] = NOW_MS

    board.refresh()

    assert found(board) == {("g", "orders", 0): (1, 0, False)}
    (group,) = board.groups()
    assert (group.group, group.state, group.epoch, group.rebalances) == ("g", "Empty", 4, 1)


def test_a_broker_that_does_not_answer_is_left_out_until_it_does() -> None:
    broker = MadeUpBroker(
        rows=[partition("orders", 0, 0, 5)], commits=[commit("g", "orders", 0, 5)]
    )
    board = board_of(broker)
    broker.is_down = True
    board.refresh()

    assert board.lags() == []
    assert board.failures == {"b1": "b1 did not answer"}

    broker.is_down = False
    broker.step()
    board.refresh()

    assert found(board) == {("g", "orders", 0): (0, 0, False)}
    assert board.failures == {}


def test_where_two_brokers_tell_of_a_group_the_newer_one_is_right() -> None:
    old = MadeUpBroker("old", commits=[commit("g", "orders", 0, 1)])
    new = MadeUpBroker("new", commits=[commit("g", "orders", 0, 2)])
    new.ms = NOW_MS + 1

    for brokers in ((old, new), (new, old)):
        assert [one.committed for one in board_of(*brokers).lags()] == [2]


def test_a_time_that_is_not_known_is_none_and_a_clock_ahead_of_ours_is_no_lag() -> None:
    broker = MadeUpBroker(
        rows=[partition("orders", 0, 0, 5), partition("orders", 1, 0, 5)],
        commits=[commit("g", "orders", 0, 1), commit("g", "orders", 1, 1)],
    )
    broker.records["orders", 1, 1] = NOW_MS + 60_000

    assert found(board_of(broker)) == {
        ("g", "orders", 0): (4, None, False),
        ("g", "orders", 1): (4, 0, False),
    }


def test_more_places_than_a_broker_is_asked_for_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "MAX_ASKED", 2)
    broker = MadeUpBroker(
        rows=[partition("orders", index, 0, 5) for index in range(3)],
        commits=[commit("g", "orders", index, 1) for index in range(3)],
    )
    broker.records = {("orders", index, 1): NOW_MS - index for index in range(3)}
    board = board_of(broker)
    assert [one.ms for one in board.lags()] == [0, 1, None]

    broker.step()
    for _ in range(3):
        board.refresh()

    assert [one.ms for one in board.lags()] == [0, 1, 2]
    assert [[place[1] for place in asked] for asked in broker.asked] == [
        [0, 1],
        [2, 0],
        [1, 2],
        [0, 1],
    ]


def test_places_without_a_time_do_not_take_the_turns_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lag, "MAX_ASKED", 2)
    broker = MadeUpBroker(
        rows=[partition("orders", index, 0, 5) for index in range(4)],
        commits=[commit("g", "orders", index, 1) for index in range(4)],
    )
    broker.records = {("orders", index, 1): NOW_MS - index for index in (2, 3)}
    board = board_of(broker)

    broker.step()
    board.refresh()
    assert [one.ms for one in board.lags()] == [None, None, 2, 3]

    broker.records["orders", 0, 1] = NOW_MS - 9
    board.refresh()
    assert [one.ms for one in board.lags()] == [9, None, 2, 3]


def test_a_broker_that_knows_nothing_of_groups_has_partitions() -> None:
    assert board_of(MadeUpBroker(rows=[partition("orders", 0, 0, 5)])).lags() == []


def test_a_real_broker_is_read_to_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 2}) as running:
            port = running.ready.inspection_port

            def asked() -> tuple[LagBoard, list[int | str | None]]:
                with Inspection(running.host, port, SECRET) as inspection:
                    board = board_of_real(inspection)
                    places = [("orders", 0, offset) for offset in range(600)]
                    return board, inspection.times([*places, ("gone", 0, 0)])

            board, times = await running.in_thread(asked)

            assert (board.failures, board.lags(), board.groups()) == ({}, [], [])
            assert times == [None] * 600 + ["gone-0 is not led here"]

    def board_of_real(inspection: Inspection) -> LagBoard:
        board = LagBoard([inspection])
        board.refresh()
        return board

    asyncio.run(story())
