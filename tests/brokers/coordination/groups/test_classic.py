"""A classic group at work: what its members see from their first join to their last word."""

import pytest

from brokers.coordination.groups.classic import (
    ClassicGroup,
    is_subscribed,
    select_protocol,
    subscribed_topics,
    unloaded,
)
from brokers.coordination.groups.classic_expiry import (
    check_offset_delete,
    timers_of,
    unused_since,
)
from brokers.coordination.groups.classic_join import member_id_of
from brokers.coordination.groups.classic_sync import check_commit
from brokers.coordination.groups.settings import (
    MAX_ID_BYTES,
    MAX_MEMBERS,
    MAX_PROTOCOLS,
    GroupSettings,
)
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import TimerKey
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.join_group import JoinGroupRequest
from tests.builders.classic_groups import GROUP, ClassicDesk

JOIN = TimerKey("join", GROUP)
SYNC = TimerKey("sync", GROUP)


def session(member_id: str) -> TimerKey:
    return TimerKey("session", GROUP, member_id)


@pytest.fixture
def desk() -> ClassicDesk:
    return ClassicDesk()


def test_a_first_member_waits_out_the_delay_and_leads(desk: ClassicDesk) -> None:
    member_id, ticket = desk.enter()
    assert ticket in desk.parked

    desk.pass_time(2_999)
    assert ticket in desk.parked
    desk.pass_time(1)

    answer = desk.answers[ticket]
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (1, member_id, "range")
    assert [member.member_id for member in answer.members] == [member_id]


def test_an_id_is_the_name_of_the_client_or_of_the_instance(desk: ClassicDesk) -> None:
    assert desk.answers[desk.join()].member_id == "reader-1"
    desk.join(instance="i")
    assert desk.there.static_ids == {"i": "i-2"}


def test_an_id_is_never_longer_than_an_id_may_be() -> None:
    long = Who("é" * 10_000, "/127.0.0.1")

    member_id = member_id_of(JoinGroupRequest(), long, "1")

    assert MAX_ID_BYTES - 2 <= len(member_id.encode()) <= MAX_ID_BYTES
    assert member_id.endswith("é-1")


def test_newcomers_in_the_first_rebalance_prolong_it_up_to_its_time(desk: ClassicDesk) -> None:
    _, first = desk.enter(rebalance_ms=7_000)
    for _ in range(3):
        desk.pass_time(2_000)
        desk.enter(rebalance_ms=7_000)
        assert first in desk.parked

    desk.pass_time(1_000)

    # Three seconds, three more, and the one that is left.
    assert desk.now_ms == 1_000 + 7_000
    assert len(desk.answers[first].members) == 4


def test_a_rebalance_waits_for_an_id_that_was_given_out(desk: ClassicDesk) -> None:
    leader, follower = desk.stable()
    pending = desk.answers[desk.join(session_ms=6_000)].member_id
    tickets = desk.join(leader), desk.join(follower, ways=[("range", b"new")])
    assert desk.parked >= set(tickets)

    desk.pass_time(6_000)

    assert pending not in desk.there.pending
    assert desk.there.state is ClassicState.COMPLETING
    assert set(tickets) <= set(desk.answers)


def test_only_the_leader_gets_the_list_of_members(desk: ClassicDesk) -> None:
    tickets = [desk.enter(ways=[("range", bytes([number]))])[1] for number in range(3)]

    desk.pass_time(6_000)

    told = [
        [(member.member_id, member.metadata) for member in desk.answers[ticket].members]
        for ticket in tickets
    ]
    assert told == [[("reader-1", b"\0"), ("reader-2", b"\1"), ("reader-3", b"\2")], [], []]


def test_everybody_gets_what_the_leader_assigned_and_it_is_written(desk: ClassicDesk) -> None:
    leader, _ = desk.enter()
    follower, _ = desk.enter()
    desk.pass_time(6_000)
    waiting = desk.sync(follower)
    assert waiting in desk.parked

    led = desk.sync(leader, assignments={leader: b"a", follower: b"b", "nobody": b"c"})

    assert desk.answers[led].assignment == b"a"
    assert desk.answers[waiting].assignment == b"b"
    assert desk.answers[waiting].protocol_name == "range"
    assert [group.assignments for group in desk.written] == [{leader: b"a", follower: b"b"}]
    assert desk.there == desk.written[-1]
    assert SYNC not in desk.timers


def test_a_member_without_an_assignment_gets_an_empty_one(desk: ClassicDesk) -> None:
    leader, _ = desk.enter()
    follower, _ = desk.enter()
    desk.pass_time(6_000)

    desk.sync(leader, assignments={leader: b"a"})

    assert desk.answers[desk.sync(follower)].assignment == b""


def test_member_that_does_not_sync_in_time_is_removed(desk: ClassicDesk) -> None:
    leader, _ = desk.enter(session_ms=100_000)
    desk.enter(session_ms=100_000)
    desk.pass_time(6_000)
    desk.sync(leader, assignments={})

    desk.pass_time(60_000)

    assert list(desk.there.members) == [leader]
    assert desk.there.state is ClassicState.PREPARING


def test_a_rebalance_sends_back_those_who_wait_for_an_assignment(desk: ClassicDesk) -> None:
    desk.enter()
    follower, _ = desk.enter()
    desk.pass_time(6_000)
    waiting = desk.sync(follower)

    desk.join(version=3)

    assert desk.error(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert session(follower) in desk.timers


def test_leader_that_does_not_rejoin_is_replaced(desk: ClassicDesk) -> None:
    leader, follower = desk.stable()
    newcomer, ticket = desk.enter(rebalance_ms=20_000)
    desk.join(follower, rebalance_ms=20_000)
    assert desk.there.state is ClassicState.PREPARING

    desk.fire("join")

    assert leader not in desk.there.members
    assert session(leader) not in desk.timers
    assert desk.there.leader == follower
    assert desk.answers[ticket].leader == follower
    assert list(desk.there.members) == [follower, newcomer]


def test_the_last_one_to_leave_leaves_an_empty_group_behind(desk: ClassicDesk) -> None:
    members = desk.stable()
    generation = desk.there.generation

    assert desk.leave(*((member_id, None) for member_id in members)) == [ErrorCode.NONE] * 2

    assert desk.there.state is ClassicState.EMPTY
    assert desk.there.generation == generation + 1
    assert (desk.there.leader, desk.there.protocol) == (None, None)
    assert desk.there == desk.written[-1]
    assert desk.timers == {}


def test_a_leave_answers_each_member_for_itself(desk: ClassicDesk) -> None:
    desk.join(instance="i")
    desk.stable(members=1)

    errors = desk.leave(("nobody", None), ("", None), ("", "i"), ("", "j"), ("reader-1", "i"))

    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert errors == [unknown, unknown, ErrorCode.NONE, unknown, unknown]


def test_waiting_member_that_leaves_gets_an_answer(desk: ClassicDesk) -> None:
    member_id, ticket = desk.enter()

    desk.leave((member_id, None))

    assert desk.error(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.parked == set()


def test_a_silent_member_is_out_after_its_session(desk: ClassicDesk) -> None:
    leader, follower = desk.stable()
    desk.pass_time(9_000)
    assert desk.heartbeat(leader) is ErrorCode.NONE

    desk.pass_time(1_000)

    assert list(desk.there.members) == [leader]
    assert follower not in desk.there.members
    assert desk.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_waiting_member_has_no_session_timeout_unless_it_is_new(desk: ClassicDesk) -> None:
    leader, follower = desk.stable()
    _, new = desk.enter(rebalance_ms=1_000_000)
    desk.join(follower, rebalance_ms=1_000_000)
    desk.pass_time(9_999)
    desk.heartbeat(leader)

    desk.pass_time(200)
    assert follower in desk.there.members

    for _ in range(31):
        desk.heartbeat(leader)
        desk.pass_time(9_500)
    assert desk.error(new) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_join_takes_the_place_of_the_first(desk: ClassicDesk) -> None:
    member_id, first = desk.enter()

    second = desk.join(member_id)

    assert desk.error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert second in desk.parked


def test_a_second_sync_takes_the_place_of_the_first(desk: ClassicDesk) -> None:
    desk.enter()
    follower, _ = desk.enter()
    desk.pass_time(6_000)
    first = desk.sync(follower)

    second = desk.sync(follower)

    assert desk.error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert second in desk.parked


def test_a_static_member_comes_back_without_a_rebalance(desk: ClassicDesk) -> None:
    desk.join(instance="i")
    desk.enter()
    desk.finish_rebalance()
    before = desk.there

    answer = desk.answers[desk.join(instance="i", ways=[("range", b"new")])]

    assert desk.there.state is ClassicState.STABLE
    assert answer.generation_id == before.generation
    assert (answer.leader, answer.skip_assignment) == (answer.member_id, True)
    assert [member.member_id for member in answer.members] == list(desk.there.members)
    assert desk.there == desk.written[-1]
    assert desk.there.static_ids == {"i": answer.member_id}
    old = before.static_ids["i"]
    assert desk.there.assignments[answer.member_id] == before.assignments[old]
    assert desk.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat(old, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_leader_with_an_old_version_does_not_learn_that_it_leads(desk: ClassicDesk) -> None:
    desk.join(instance="i")
    desk.finish_rebalance()
    old = desk.there.leader

    answer = desk.answers[desk.join(instance="i", version=8)]

    assert (answer.leader, answer.members, answer.skip_assignment) == (old, [], False)
    assert desk.there.leader == answer.member_id != old


def test_a_static_member_that_waits_is_fenced_by_the_next_one(desk: ClassicDesk) -> None:
    first = desk.join(instance="i")

    second = desk.join(instance="i")

    assert desk.error(first) is ErrorCode.FENCED_INSTANCE_ID
    assert second in desk.parked
    assert desk.there.leader == desk.there.static_ids["i"]


def test_static_members_alone_hold_a_rebalance_open(desk: ClassicDesk) -> None:
    desk.join(instance="i", session_ms=1_000_000)
    desk.finish_rebalance()
    member_id = desk.there.static_ids["i"]
    dynamic, _ = desk.enter()
    desk.leave((dynamic, None))

    desk.fire("join")

    assert desk.there.state is ClassicState.PREPARING
    assert JOIN in desk.timers
    assert desk.heartbeat(member_id) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("member_id", ["", "somebody"])
def test_commit_without_a_member_is_for_empty_groups(member_id: str) -> None:
    group = ClassicGroup(group_id=GROUP)

    assert check_commit(group, generation=-1, member_id=member_id, instance_id=None) is None
    refused = check_commit(group, generation=0, member_id=member_id, instance_id=None)
    assert refused is not None
    assert refused.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_of_another_generation_is_refused(desk: ClassicDesk) -> None:
    leader, _ = desk.stable()

    for generation in (-1, 0, 2):
        refused = check_commit(
            desk.there, generation=generation, member_id=leader, instance_id=None
        )
        assert refused is not None
        assert refused.code is ErrorCode.ILLEGAL_GENERATION
        assert str(generation) in refused.message


def test_most_members_choose_the_protocol_and_the_leader_breaks_a_tie(desk: ClassicDesk) -> None:
    a, b = ("range", b""), ("sticky", b"")
    desk.enter(ways=[a, b])
    desk.enter(ways=[b, a])
    assert select_protocol(desk.there) == "range"

    desk.enter(ways=[b, a, ("own", b"")])
    assert select_protocol(desk.there) == "sticky"

    desk.enter(ways=[a])
    assert select_protocol(desk.there) == "range"


def test_a_member_may_bring_so_many_protocols(desk: ClassicDesk) -> None:
    ways = [(f"p{number}", b"") for number in range(MAX_PROTOCOLS + 1)]

    assert desk.error(desk.join(ways=ways)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert desk.error(desk.join(ways=[("p", bytes(2**20 + 1))])) is ErrorCode.INVALID_REQUEST
    names = [(f"{number}" * 30_000, b"") for number in range(36)]
    assert desk.error(desk.join(ways=names)) is ErrorCode.INVALID_REQUEST
    assert desk.error(desk.join(instance="é" * 2_049)) is ErrorCode.INVALID_REQUEST
    assert desk.group is None


def test_ids_that_are_given_out_count_for_the_ceiling() -> None:
    desk = ClassicDesk()
    ids = frozenset(map(str, range(MAX_MEMBERS)))
    desk.group = ClassicGroup(group_id=GROUP, pending=ids)

    assert desk.error(desk.join()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.join("7") in desk.parked


def test_loaded_group_continues_with_its_members(desk: ClassicDesk) -> None:
    members = desk.stable()
    again = ClassicDesk()

    again.load(desk.there)

    assert {again.heartbeat(member_id) for member_id in members} == {ErrorCode.NONE}
    assert set(again.timers) == {session(member_id) for member_id in members}


def test_a_loaded_group_with_too_many_members_rebalances(desk: ClassicDesk) -> None:
    leader, follower = desk.stable()
    small = ClassicDesk(settings=GroupSettings(max_size=1))

    small.load(desk.there)
    first, second = small.join(follower), small.join(leader)
    small.fire("join")

    assert small.error(second) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.answers[first].leader == follower


def test_all_who_wait_are_sent_to_the_new_coordinator(desk: ClassicDesk) -> None:
    tickets = {desk.enter()[1], desk.enter()[1]}

    replies = unloaded(desk.there)

    assert {reply.ticket for reply in replies} == tickets
    codes = {getattr(reply.answer, "error_code", None) for reply in replies}
    assert codes == {ErrorCode.NOT_COORDINATOR}


def test_offsets_of_unsubscribed_topics_can_be_deleted(desk: ClassicDesk) -> None:
    topics = b"".join(b"\0\1" + name for name in (b"a", b"b"))
    desk.stable(ways=[("range", b"\0\0\0\0\0\2" + topics + b"\xff" * 4)])
    group = desk.there

    assert subscribed_topics(group) == frozenset({"a", "b"})
    assert not is_subscribed(group, "c")
    assert check_offset_delete(group) is None


def test_unknown_subscription_counts_as_every_topic(desk: ClassicDesk) -> None:
    desk.stable(ways=[("own", b"")])

    assert subscribed_topics(desk.there) is None
    assert is_subscribed(desk.there, "c")


def test_topics_of_another_protocol_type_are_unknown(desk: ClassicDesk) -> None:
    desk.stable(protocol_type="connect")

    refused = check_offset_delete(desk.there)

    assert refused is not None
    assert refused.code is ErrorCode.NON_EMPTY_GROUP
    assert subscribed_topics(desk.there) is None


def test_offsets_expire_by_the_state_of_their_group(desk: ClassicDesk) -> None:
    assert unused_since(ClassicGroup(group_id=GROUP), 5, knows_topics=False) == 5

    members = desk.stable()
    assert unused_since(desk.there, 5, knows_topics=True) == 5
    assert unused_since(desk.there, 5, knows_topics=False) is None

    desk.leave((members[0], None))
    assert unused_since(desk.there, 5, knows_topics=True) is None

    desk.leave((members[1], None))
    desk.fire("join")
    assert unused_since(desk.there, 5, knows_topics=False) == desk.now_ms


def test_timers_of_a_group_are_all_that_are_set(desk: ClassicDesk) -> None:
    desk.stable()
    desk.join()

    assert set(desk.timers) <= set(timers_of(desk.there))
