"""The table of requests of classic members in a group of the consumer protocol: each row occurs."""

from collections.abc import Callable
from typing import Any

import pytest

from brokers.coordination.groups.mixed_states import MEETINGS, MixedEvent, Obstacle, render
from brokers.protocol.errors import ErrorCode
from tests.builders import mixed_groups as mixed
from tests.builders.mixed_groups import cluster, desk_of, subscription

OTHER_WAY = {"sticky": subscription(["orders"])}
UNREADABLE = {"range": b"\0"}


class Scene:
    """A group with a classic member, a static classic one and one of the consumer protocol."""

    def __init__(self, **settings: int) -> None:
        self.desk = desk_of(cluster(orders=6), **settings)
        shares = {"classic": {"orders": [0, 1, 2]}, "static": {"orders": [3, 4, 5]}}
        ids = mixed.settle(self.desk, shares, instances={"static": "i"})
        self.classic, self.static = ids["classic"], ids["static"]
        mixed.enter(self.desk, "modern")
        self.epoch = 1  # of the classic members, while the group's is 2

    def join(self, member_id: str = "", **wishes: Any) -> ErrorCode:
        return mixed.code(mixed.join(self.desk, member_id, **wishes))

    def sync(self, member_id: str, epoch: int, **wishes: Any) -> ErrorCode:
        return mixed.code(mixed.sync(self.desk, member_id, epoch, **wishes))

    def caught_up(self) -> int:
        """The classic member has joined again; returns its epoch."""
        generation: int = mixed.join(self.desk, self.classic).generation_id
        return generation

    def settled(self) -> int:
        """Each member has its target assignment."""
        for _ in range(2):
            mixed.join(self.desk, self.static, instance_id="i")
            epoch = self.caught_up()
        mixed.beat(self.desk, "modern", mixed.member_of(self.desk, "modern").epoch)
        return epoch


CASES: dict[MixedEvent, Callable[[Scene], ErrorCode]] = {
    MixedEvent.JOIN_MISFIT: lambda s: s.join("x", protocols=OTHER_WAY),
    MixedEvent.JOIN_WITHOUT_ID: lambda s: s.join(version=4),
    MixedEvent.JOIN_UNKNOWN: lambda s: s.join(s.static, instance_id="nobody"),
    MixedEvent.JOIN_FENCED: lambda s: s.join(s.classic, instance_id="i"),
    MixedEvent.JOIN_UNREADABLE: lambda s: s.join("x", protocols=UNREADABLE),
    MixedEvent.JOIN: lambda s: s.join(s.classic),
    MixedEvent.UNKNOWN: lambda s: s.sync("nobody", s.epoch),
    MixedEvent.FENCED: lambda s: s.sync(s.classic, s.epoch, instance_id="i"),
    MixedEvent.OTHER_PROTOCOL: lambda s: s.sync("modern", 2),
    MixedEvent.GENERATION: lambda s: s.sync(s.classic, s.epoch + 1),
    MixedEvent.SYNC_MISFIT: lambda s: s.sync(s.classic, s.epoch, protocol_name="sticky"),
    MixedEvent.SYNC_BEHIND: lambda s: s.sync(s.classic, s.epoch),
    MixedEvent.SYNC: lambda s: s.sync(s.classic, s.caught_up()),
    MixedEvent.HEARTBEAT_BEHIND: lambda s: mixed.heartbeat(s.desk, s.classic, s.epoch),
    MixedEvent.HEARTBEAT: lambda s: mixed.heartbeat(s.desk, s.classic, s.settled()),
    MixedEvent.LEAVE_UNKNOWN: lambda s: mixed.leave(s.desk, ("nobody", None))[0],
    MixedEvent.LEAVE_FENCED: lambda s: mixed.leave(s.desk, (s.classic, "i"))[0],
    MixedEvent.LEAVE: lambda s: mixed.leave(s.desk, ("modern", None))[0],
}


@pytest.mark.parametrize("event", list(CASES))
def test_a_request_meets_what_the_table_says(event: MixedEvent) -> None:
    assert CASES[event](Scene()) is MEETINGS[event].error


def test_full_group_refuses_new_members_and_keeps_its_own() -> None:
    scene = Scene(consumer_max_size=3)

    assert scene.join("x") is MEETINGS[MixedEvent.JOIN_FULL].error
    assert scene.join(scene.classic) is ErrorCode.NONE


def test_heartbeats_are_refused_as_syncs_are() -> None:
    scene, desk = Scene(), Scene().desk

    assert mixed.heartbeat(desk, "nobody", 1) is MEETINGS[MixedEvent.UNKNOWN].error
    assert mixed.heartbeat(desk, "nobody", 1, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    fenced = mixed.heartbeat(scene.desk, scene.classic, 1, instance_id="i")
    assert fenced is MEETINGS[MixedEvent.FENCED].error
    assert mixed.heartbeat(desk, "modern", 2) is MEETINGS[MixedEvent.OTHER_PROTOCOL].error
    assert mixed.heartbeat(scene.desk, scene.classic, 9) is MEETINGS[MixedEvent.GENERATION].error


def test_every_event_has_a_row_and_a_case() -> None:
    assert set(MEETINGS) == set(MixedEvent)
    assert set(CASES) | {MixedEvent.JOIN_FULL} == set(MixedEvent)


def test_the_page_shows_all_rows_and_obstacles() -> None:
    page = render()

    assert all(event.value in page for event in MixedEvent)
    assert all(obstacle.value in page for obstacle in Obstacle)
