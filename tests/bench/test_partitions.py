"""Partitions are made, written and asked after; led are those that the broker answers for."""

from pathlib import Path

import pytest

from bench.broker_targets import Target
from bench.partitions import create, led_partitions, produce, spread
from tests.fakes.broker_thread import BesideBroker, broker_beside

pytestmark = pytest.mark.slow


def target(beside: BesideBroker) -> Target:
    return Target(name="beside", host=beside.running.host, port=beside.running.port, pid=None)


def test_all_partitions_of_a_new_topic_are_led(tmp_path: Path) -> None:
    with broker_beside(tmp_path) as beside:
        seconds = create(target(beside), "many", 30)

        assert seconds > 0
        assert led_partitions(target(beside), "many", 30) == 30
        assert led_partitions(target(beside), "many", 31) == 30


def test_one_record_is_in_each_partition_that_was_written(tmp_path: Path) -> None:
    with broker_beside(tmp_path, topics={"many": 5}) as beside:
        produce(target(beside), "many", [0, 2, 4])

        replicas = beside.running.broker.replicas
        ends = [replicas.leader("many", index).log.end_offset for index in range(5)]
        assert ends == [1, 0, 1, 0, 1]


def test_a_refused_record_is_a_failure(tmp_path: Path) -> None:
    with (
        broker_beside(tmp_path, topics={"many": 1}) as beside,
        pytest.raises(AssertionError, match="produce was answered with"),
    ):
        produce(target(beside), "many", [0, 1])


def test_a_broker_that_is_away_leads_nothing() -> None:
    # Nobody listens on port 1 of this address.
    away = Target(name="away", host="127.0.0.1", port=1, pid=None)

    assert led_partitions(away, "many", 1) == 0


@pytest.mark.parametrize("partitions", [1, 2, 16, 500])
def test_a_spread_goes_from_the_first_to_the_last(partitions: int) -> None:
    found = spread(partitions)

    assert found[0] == 0
    assert found[-1] == partitions - 1
    assert len(found) == min(partitions, 16)
