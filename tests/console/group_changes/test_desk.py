"""The calls that a plan makes: in portions that brokers take, and what is told where one fails."""

from collections.abc import Iterable, Mapping

import pytest

from brokers.controlplane.services import GroupChangeKind
from console.group_changes import desk
from console.group_changes.desk import CALL_BYTES, Desk
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.values import Place
from tests.builders.group_plans import group_plan

MANY = 3_000


class Recorded:
    """Notes calls in the place of `Groups`, and fails at one of them."""

    sizes: list[int]
    fails_at: int | None

    def __init__(self, _connection: Connection) -> None:
        pass

    def commit_each(self, _name: str, offsets: Mapping[Place, int]) -> dict[Place, KafkaFailure]:
        return self._noted(len(offsets))

    def delete_offsets_each(self, _name: str, places: Iterable[Place]) -> dict[Place, KafkaFailure]:
        return self._noted(len(list(places)))

    def _noted(self, count: int) -> dict[Place, KafkaFailure]:
        if len(self.sizes) == self.fails_at:
            raise failure("REQUEST_TIMED_OUT", "group billing")
        self.sizes.append(count)
        return {}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    Recorded.sizes, Recorded.fails_at = [], None
    monkeypatch.setattr(desk, "Groups", Recorded)
    return Recorded


@pytest.fixture
def at(recorded: type[Recorded]) -> Desk:
    return Desk(Connection(bootstrap="127.0.0.1:1", until=Deadline(1)))


@pytest.mark.parametrize("kind", [GroupChangeKind.RESET_OFFSETS, GroupChangeKind.DELETE_OFFSETS])
def test_many_partitions_are_several_calls(
    at: Desk, recorded: type[Recorded], kind: GroupChangeKind
) -> None:
    assert at.carry_out(group_plan(MANY, kind=kind, topic="t" * 249)) == {}

    assert sum(recorded.sizes) == MANY
    assert len(recorded.sizes) > 1
    assert max(recorded.sizes) * 249 < CALL_BYTES


def test_a_long_name_of_a_group_makes_smaller_calls(at: Desk, recorded: type[Recorded]) -> None:
    at.carry_out(group_plan(300, group="g" * 4_000))

    assert max(recorded.sizes) * 4_000 < CALL_BYTES


def test_what_was_not_come_to_is_told_with_the_failure(at: Desk, recorded: type[Recorded]) -> None:
    recorded.fails_at = 1

    refused = at.carry_out(group_plan(MANY, topic="t" * 249))

    [done] = recorded.sizes
    assert len(refused) == MANY - done
    assert {failed.name for failed in refused.values()} == {"REQUEST_TIMED_OUT"}
    assert Place(topic="t" * 249, partition=0) not in refused


def test_a_failure_of_the_first_call_is_one_of_the_whole(
    at: Desk, recorded: type[Recorded]
) -> None:
    recorded.fails_at = 0

    with pytest.raises(KafkaFailure, match="REQUEST_TIMED_OUT"):
        at.carry_out(group_plan(2))
