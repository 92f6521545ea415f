"""Random lives of a classic group, beside a model that knows the rules and nothing of the code."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokers.coordination.groups.classic import ClassicGroup, Way, counted
from brokers.coordination.groups.classic_sync import check_commit
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.shard import TimerKey
from brokers.protocol.errors import ErrorCode
from tests.builders.classic_groups import GROUP, ClassicDesk
from tests.scale import count

WAYS = {
    "a": (("range", b"1"), ("sticky", b"1")),
    "b": (("sticky", b"1"), ("range", b"1")),
    "c": (("range", b"2"),),
}
INSTANCES = ("i", "j")

# What happens, to whom (by number, modulo those there are), and how.
ACTS = ["join", "join", "enter", "enter", "static", "sync", "sync", "sync", "beat", "commit"]
ACTS += ["leave", "session", "join time", "sync time", "load", "time"]
STEP = st.tuples(st.sampled_from(ACTS), st.integers(0, 9), st.sampled_from(sorted(WAYS)))
# Long lives: it takes half a dozen steps to become stable.
LIFE = st.integers(0, 60).flatmap(lambda size: st.lists(STEP, min_size=size, max_size=size))


@dataclass
class Model:
    """The rules: a plain dictionary of members, each with its ways, and who waits for what."""

    members: dict[str, str] = field(default_factory=dict)
    given_out: set[str] = field(default_factory=set)
    joining: set[str] = field(default_factory=set)
    syncing: set[str] = field(default_factory=set)
    instances: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, bytes] = field(default_factory=dict)
    state: str = "Empty"
    generation: int = 0
    is_first: bool = False

    def fits(self, ways: str) -> bool:
        shared = set.intersection(
            {"range", "sticky"}, *({n for n, _ in WAYS[w]} for w in self.members.values())
        )
        return self.state == "Empty" or bool(shared & {name for name, _ in WAYS[ways]})

    def rebalance(self) -> None:
        """Somebody came, went or changed."""
        if self.state == "PreparingRebalance":
            if not self.is_first:
                self.complete_if_all()
            return
        self.is_first = self.state == "Empty"
        self.state = "PreparingRebalance"
        self.syncing.clear()
        if not self.is_first:
            self.complete_if_all()

    def complete_if_all(self) -> None:
        if self.joining == set(self.members) and not self.given_out:
            self.complete()

    def complete(self) -> None:
        static = set(self.instances.values())
        for member_id in set(self.members) - self.joining - static:
            self.drop(member_id)
        self.is_first = False
        if self.members and not self.joining:
            return
        self.generation += 1
        self.state = "CompletingRebalance" if self.members else "Empty"
        self.joining.clear()

    def drop(self, member_id: str) -> None:
        del self.members[member_id]
        self.joining.discard(member_id)
        self.syncing.discard(member_id)
        self.instances = {i: m for i, m in self.instances.items() if m != member_id}

    def refusal(self, member_id: str, generation: int) -> ErrorCode:
        """Of a heartbeat or a commit."""
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION


class Pair:
    """A group and the model of it; each step is made in both, and both are compared."""

    def __init__(self) -> None:
        self.desk = ClassicDesk(settings=GroupSettings(initial_rebalance_delay_ms=100))
        self.model = Model()

    def step(self, act: str, number: int, ways: str) -> None:
        known = sorted(self.model.members) + sorted(self.model.given_out) + ["nobody"]
        member_id = known[number % len(known)]
        match act:
            case "enter":
                self.enter(ways)
            case "static":
                self.join_static(INSTANCES[number % 2], ways)
            case "join":
                self.join(member_id, ways)
            case "sync":
                self.sync(member_id, number)
            case "beat":
                self.beat(member_id, number)
            case "commit":
                self.commit(member_id, number)
            case "leave":
                self.leave(member_id)
            case "session":
                self.end_session(member_id)
            case "join time":
                self.end_join_time()
            case "sync time":
                self.end_sync_time()
            case "load":
                self.load()
            case "time":
                self.desk.now_ms += number
        self.compare()

    def enter(self, ways: str) -> None:
        ticket = self.desk.join(ways=WAYS[ways])
        if not self.model.fits(ways):
            assert self.desk.error(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return
        assert self.desk.error(ticket) is ErrorCode.MEMBER_ID_REQUIRED
        self.model.given_out.add(self.desk.answers[ticket].member_id)

    def join_static(self, instance: str, ways: str) -> None:
        model, desk = self.model, self.desk
        old = model.instances.get(instance)
        protocol = None if desk.group is None else desk.group.protocol
        ticket = desk.join(instance=instance, ways=WAYS[ways])
        if not model.fits(ways):
            assert desk.error(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return
        new = f"{instance}-{desk.ids}"
        model.instances[instance] = new
        if old is None:
            model.members[new] = ways
        else:
            model.members = {
                (new if m == old else m): (ways if m == old else w)
                for m, w in model.members.items()
            }
            model.joining.discard(old)
            model.syncing.discard(old)
            if old in model.assigned:
                model.assigned[new] = model.assigned.pop(old)
            if model.state == "Stable" and desk.there.state is ClassicState.STABLE:
                # The one choice that the model leaves open: the votes kept the protocol.
                assert desk.there.protocol == protocol
                assert desk.answers[ticket].generation_id == model.generation
                return
        model.joining.add(new)
        model.rebalance()

    def join(self, member_id: str, ways: str) -> None:
        model, desk = self.model, self.desk
        leader = None if desk.group is None else desk.group.leader
        ticket = desk.join(member_id, ways=WAYS[ways])
        if model.state == "Empty" and not model.given_out and desk.group is None:
            assert desk.error(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        elif not model.fits(ways):
            assert desk.error(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        elif member_id in model.given_out:
            model.given_out.remove(member_id)
            model.members[member_id] = ways
            model.joining.add(member_id)
            model.rebalance()
        elif member_id not in model.members:
            assert desk.error(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        else:
            same = model.members[member_id] == ways
            leads = model.state == "Stable" and member_id == leader
            if model.state != "PreparingRebalance" and same and not leads:
                assert desk.answers[ticket].generation_id == model.generation
                return
            model.members[member_id] = ways
            model.joining.add(member_id)
            model.rebalance()

    def sync(self, member_id: str, number: int) -> None:
        model, desk = self.model, self.desk
        leader = None if desk.group is None else desk.group.leader
        generation = desk.there.generation - (number == 9) if desk.group else 0
        assignments = {m: f"{number} for {m}".encode() for m in model.members}
        ticket = desk.sync(member_id, generation, assignments if member_id == leader else None)
        refused = model.refusal(member_id, generation)
        if refused is not ErrorCode.NONE:
            assert desk.error(ticket) is refused
        elif model.state == "PreparingRebalance":
            assert desk.error(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        elif model.state == "Stable":
            assert desk.answers[ticket].assignment == model.assigned[member_id]
        elif member_id == leader:
            model.state = "Stable"
            model.assigned = assignments
            model.syncing.clear()
            assert desk.answers[ticket].assignment == assignments[member_id]
        else:
            model.syncing.add(member_id)

    def beat(self, member_id: str, number: int) -> None:
        generation = self.model.generation + (number == 9)
        expected = self.model.refusal(member_id, generation)
        if expected is ErrorCode.NONE and self.model.state == "PreparingRebalance":
            expected = ErrorCode.REBALANCE_IN_PROGRESS
        assert self.desk.heartbeat(member_id, generation) is expected

    def commit(self, member_id: str, number: int) -> None:
        if self.desk.group is None:
            return
        generation = -1 if number == 9 else self.model.generation
        expected = self.model.refusal(member_id, generation)
        if expected is ErrorCode.NONE and self.model.state == "CompletingRebalance":
            expected = ErrorCode.REBALANCE_IN_PROGRESS
        if self.model.state == "Empty" and generation == -1:
            expected = ErrorCode.NONE
        refused = check_commit(
            self.desk.group, generation=generation, member_id=member_id, instance_id=None
        )
        assert (ErrorCode.NONE if refused is None else refused.code) is expected

    def leave(self, member_id: str) -> None:
        model = self.model
        error = self.desk.leave((member_id, None))[0]
        if member_id in model.given_out:
            model.given_out.remove(member_id)
        elif member_id in model.members:
            model.drop(member_id)
        else:
            assert error is ErrorCode.UNKNOWN_MEMBER_ID
            return
        assert error is ErrorCode.NONE
        if model.state != "Empty":
            model.rebalance()

    def end_session(self, member_id: str) -> None:
        model, group = self.model, self.desk.group
        is_new = group is not None and (
            member_id in group.joining and group.joining[member_id].is_new
        )
        self.desk.fire("session", member_id)
        waits = member_id in model.syncing or (member_id in model.joining and not is_new)
        if member_id in model.given_out:
            model.given_out.remove(member_id)
            if model.state == "PreparingRebalance":
                model.complete_if_all()
        elif member_id in model.members and not waits:
            model.drop(member_id)
            if model.state == "PreparingRebalance":
                model.complete_if_all()
            else:
                model.rebalance()

    def end_join_time(self) -> None:
        group = self.desk.group
        delay = None if group is None else group.first_delay
        self.desk.fire("join")
        goes_on = delay is not None and delay.has_newcomers and delay.remaining_ms > 0
        if self.model.state == "PreparingRebalance" and not goes_on:
            self.model.complete()

    def end_sync_time(self) -> None:
        missing = frozenset() if self.desk.group is None else self.desk.group.pending_sync
        self.desk.fire("sync")
        for member_id in missing:
            self.model.drop(member_id)
        if missing:
            self.model.rebalance()

    def load(self) -> None:
        """The broker is killed: what is left is the last record."""
        desk, model = self.desk, self.model
        if model.state not in {"Stable", "Empty"} or not desk.written or model.given_out:
            return
        last = desk.written[-1]
        assert persisted(last) == persisted(desk.there)
        desk.load(replace(last, members=desk.there.members, supporters=desk.there.supporters))

    def compare(self) -> None:
        model, desk, group = self.model, self.desk, self.desk.group
        if group is None:
            assert (model.state, model.members) == ("Empty", {})
            return
        assert group.state.value == model.state
        assert group.generation == model.generation
        assert list(group.members) == list(model.members)
        assert set(group.joining) == model.joining
        assert set(group.syncing) == model.syncing
        assert group.pending == model.given_out
        assert group.static_ids == model.instances
        check(group)
        waiting = {waiting.ticket for waiting in group.joining.values()}
        assert desk.parked == waiting | set(group.syncing.values())
        assert (TimerKey("join", GROUP) in desk.timers) >= (model.state == "PreparingRebalance")
        assert (TimerKey("sync", GROUP) in desk.timers) >= bool(group.pending_sync)


def persisted(group: ClassicGroup) -> ClassicGroup:
    """The part of a group that its record holds."""
    members = {
        member_id: replace(
            member, ways=(Way(group.protocol or "", member.metadata(group.protocol)),)
        )
        for member_id, member in group.members.items()
    }
    return ClassicGroup(
        group_id=group.group_id,
        state=group.state,
        since_ms=group.since_ms,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        members=members,
        static_ids=group.static_ids,
        supporters=counted({}, gone=(), come=members.values()),
        assignments=group.assignments,
    )


def check(group: ClassicGroup) -> None:
    """What holds for every group at every time."""
    members = set(group.members)
    assert group.supporters == counted({}, gone=(), come=group.members.values())
    assert (group.leader in members) is bool(members)
    assert group.pending_sync <= members
    assert not group.pending & members
    assert not members or group.state is not ClassicState.EMPTY
    assert not group.joining or group.state is ClassicState.PREPARING
    assert not group.syncing or group.state is ClassicState.COMPLETING
    assert set(group.assignments) <= members
    if group.state is ClassicState.STABLE:
        assert set(group.assignments) == members


def test_a_group_does_what_the_rules_say(report: Callable[[str], None]) -> None:
    taken = 0

    @settings(
        max_examples=count(120, 300, long=6_000),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(LIFE)
    def live(steps: list[tuple[str, int, str]]) -> None:
        nonlocal taken
        pair = Pair()
        for step in steps:
            pair.step(*step)
        taken += len(steps)

    live()

    report(f"{taken} steps")
    assert taken >= count(1_000, 3_000, long=80_000)


@settings(max_examples=count(60, 120, long=3_000), deadline=None)
@given(LIFE)
def test_a_group_left_alone_becomes_empty_and_answers_everybody(
    steps: list[tuple[str, int, str]],
) -> None:
    pair = Pair()
    for step in steps:
        pair.step(*step)

    pair.desk.pass_time(1_000_000)

    assert pair.desk.parked == set()
    assert pair.desk.group is None or pair.desk.group.is_empty
    assert pair.desk.timers == {}
