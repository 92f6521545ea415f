"""The table of a classic group: every row is what the operations do, and the page shows it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from brokers.coordination.groups.classic_expiry import check_delete, loaded
from brokers.coordination.groups.classic_sync import check_commit
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.states import EDGES, MOVES, ClassicState, Event, Then, render
from brokers.protocol.errors import ErrorCode
from tests.builders.classic_groups import ClassicDesk

PAGE = Path(__file__).resolve().parents[4] / "docs" / "groups.md"
RENEW = "python -m brokers.coordination.groups.states > docs/groups.md"

BOTH = (("range", b"m"), ("sticky", b"m"))
OTHER = (("sticky", b"m"), ("range", b"m"))
RANGE = (("range", b"m"),)


class Scene:
    """A group in a state: a leader and a follower, a static member, and an id given out.

    Of an Empty group only the id is there.
    """

    def __init__(self, state: ClassicState, max_size: int = 100) -> None:
        self.desk = ClassicDesk(settings=GroupSettings(max_size=max_size))
        self.pending = ""
        desk = self.desk
        if state is not ClassicState.EMPTY:
            self.leader, _ = desk.enter(ways=BOTH)
            self.follower, _ = desk.enter(ways=BOTH)
            self.static = f"i-{desk.ids + 1}"
            desk.join(instance="i", ways=BOTH)
            desk.finish_rebalance()
        self.pending = desk.answers[desk.join(ways=BOTH)].member_id
        if state is ClassicState.PREPARING:
            desk.join(self.leader, ways=BOTH)
        elif state is ClassicState.COMPLETING:
            desk.leave((self.pending, None))
            desk.join(self.leader, ways=BOTH)
            desk.join(self.follower, ways=BOTH)
            desk.join(self.static, instance="i", ways=BOTH)
            self.pending = desk.answers[desk.join(ways=BOTH)].member_id
        assert state is ClassicState.EMPTY or desk.there.state is state

    def join(self, member_id: str = "", **wishes: object) -> ErrorCode | None:
        ticket = self.desk.join(member_id, **{"ways": BOTH, **wishes})  # type: ignore[arg-type]
        return self.desk.error(ticket) if ticket in self.desk.answers else None

    def sync(self, member_id: str, **more: object) -> ErrorCode | None:
        ticket = self.desk.sync(member_id, **more)  # type: ignore[arg-type]
        return self.desk.error(ticket) if ticket in self.desk.answers else None

    def commit(self, generation: int, member_id: str) -> ErrorCode:
        refused = check_commit(
            self.desk.there, generation=generation, member_id=member_id, instance_id=None
        )
        return ErrorCode.NONE if refused is None else refused.code

    def delete(self) -> ErrorCode:
        refused = check_delete(self.desk.there)
        return ErrorCode.NONE if refused is None else refused.code

    def fire(self, kind: str, member_id: str = "") -> None:
        self.desk.fire(kind, member_id)

    def fire_while_waiting(self, member_id: str) -> None:
        """Lets the session be over of a member that waits and knows its id."""
        if self.desk.there.state is ClassicState.PREPARING:
            self.join(member_id)
        else:
            self.sync(member_id)
        self.fire("session", member_id)

    def overfill(self) -> None:
        group = self.desk.there
        desk = ClassicDesk(settings=GroupSettings(max_size=1))
        desk.take(loaded(group, settings=desk.settings, now_ms=0))
        self.desk.group = desk.group or group


ACTS: dict[Event, Callable[[Scene], object]] = {
    Event.JOIN_MISFIT: lambda s: s.join(protocol_type="") or s.join(ways=[("none", b"")]),
    Event.JOIN_WITHOUT_ID: lambda s: s.join(),
    Event.JOIN_NEWCOMER: lambda s: s.join(version=3),
    Event.JOIN_REPLACED: lambda s: s.join(instance="i"),
    Event.JOIN_REPLACED_AND_CHANGED: lambda s: s.join(instance="i", ways=[("sticky", b"x")]),
    Event.JOIN_PENDING: lambda s: s.join(s.pending),
    Event.JOIN_PENDING_AS_STATIC: lambda s: s.join(s.pending, instance="j"),
    Event.JOIN_FENCED: lambda s: s.join(s.leader, instance="i"),
    Event.JOIN_UNKNOWN: lambda s: s.join("nobody"),
    Event.JOIN_LEADER_AGAIN: lambda s: s.join(s.leader),
    Event.JOIN_FOLLOWER_AGAIN: lambda s: s.join(s.follower),
    Event.JOIN_CHANGED: lambda s: s.join(s.follower, ways=OTHER),
    Event.SYNC_MISFIT: lambda s: s.sync(s.leader, protocol="none"),
    Event.SYNC_FOLLOWER: lambda s: s.sync(s.follower),
    Event.SYNC_LEADER: lambda s: s.sync(s.leader),
    Event.HEARTBEAT: lambda s: s.desk.heartbeat(s.follower),
    Event.UNKNOWN: lambda s: s.desk.heartbeat("nobody"),
    Event.FENCED: lambda s: s.desk.heartbeat(s.leader, instance="i"),
    Event.GENERATION: lambda s: s.desk.heartbeat(s.leader, generation=77),
    Event.COMMIT_SIMPLE: lambda s: s.commit(-1, ""),
    Event.COMMIT_MEMBER: lambda s: s.commit(s.desk.there.generation, s.follower),
    Event.LEAVE_UNKNOWN: lambda s: s.desk.leave(("nobody", None))[0],
    Event.LEAVE_FENCED: lambda s: s.desk.leave((s.leader, "i"))[0],
    Event.LEAVE_PENDING: lambda s: s.desk.leave((s.pending, None))[0],
    Event.LEAVE_MEMBER: lambda s: s.desk.leave((s.follower, None))[0],
    Event.SESSION_PENDING: lambda s: s.fire("session", s.pending),
    Event.SESSION_WAITING: lambda s: s.fire_while_waiting(s.follower),
    Event.SESSION_MEMBER: lambda s: s.fire("session", s.follower),
    Event.JOIN_TIME: lambda s: s.fire("join"),
    Event.SYNC_TIME: lambda s: s.fire("sync"),
    Event.SYNC_TIME_IN_VAIN: lambda s: s.fire("sync"),
    Event.OVER_CAPACITY: lambda s: s.overfill(),
    Event.DELETE: lambda s: s.delete(),
}

# These need a group of their own, below; or cannot be told from a scene.
APART = {
    (ClassicState.EMPTY, Event.JOIN_FULL),
    (ClassicState.PREPARING, Event.JOIN_TIME_EXTENDED),
    (ClassicState.COMPLETING, Event.SYNC_TIME_IN_VAIN),
    (ClassicState.STABLE, Event.SYNC_TIME),
    (ClassicState.PREPARING, Event.OVER_CAPACITY),
    (ClassicState.COMPLETING, Event.OVER_CAPACITY),
}


@pytest.mark.parametrize(
    ("state", "event"),
    [pair for pair in EDGES if pair not in APART and pair[1] is not Event.JOIN_FULL],
    ids=lambda part: part.name,
)
def test_every_edge_is_what_the_operations_do(state: ClassicState, event: Event) -> None:
    scene = Scene(state)
    edge = EDGES[state, event]

    answer = ACTS[event](scene)

    assert scene.desk.there.state in edge.states
    if edge.then is Then.REFUSE:
        assert answer is edge.error
    else:
        assert answer in {None, ErrorCode.NONE}


@pytest.mark.parametrize(
    "state", [ClassicState.PREPARING, ClassicState.COMPLETING, ClassicState.STABLE]
)
def test_full_group_refuses_a_new_member(state: ClassicState) -> None:
    scene = Scene(state)
    full = len(scene.desk.there.joining) or len(scene.desk.there.members)
    scene.desk.settings = GroupSettings(max_size=full)

    assert scene.join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.desk.there.state is state


def test_an_id_that_a_full_group_gave_out_is_taken_back() -> None:
    scene = Scene(ClassicState.STABLE)
    scene.desk.settings = GroupSettings(max_size=3)

    assert scene.join(scene.pending) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not scene.desk.there.pending


def test_moves_and_edges_agree() -> None:
    """From the start of each edge, a chain of moves leads to its end."""
    ways = {state: {state} for state in ClassicState}
    for _ in ClassicState:
        for old, new in MOVES:
            for reached in ways.values():
                if old in reached:
                    reached.add(new)

    assert [pair for pair, edge in EDGES.items() if not edge.states <= ways[pair[0]]] == []


def test_a_group_that_is_not_there_has_no_members() -> None:
    desk = ClassicDesk()

    assert desk.error(desk.join("somebody")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.error(desk.sync("somebody")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat("somebody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.leave(("somebody", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.group is None


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), RENEW
