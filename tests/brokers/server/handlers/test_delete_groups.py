"""DeleteGroups: what goes, what stays, and when that is said."""

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_groups import DeleteGroupsRequest
from brokers.server.handlers import delete_groups
from tests.brokers.coordination.groups.test_shard import GROUP, beat, commit, desk, enter, settle
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import GroupHandlers

__all__ = ["desk"]


def ask(handlers: GroupHandlers, *group_ids: str, version: int = 2) -> list[tuple[str, ErrorCode]]:
    request = DeleteGroupsRequest(groups_names=list(group_ids))
    answer = handlers.ask(delete_groups, request, version)
    return [(result.group_id, result.error_code) for result in answer.results]


@pytest.mark.parametrize("version", range(3))
def test_groups_without_members_go_and_the_others_stay(desk: GroupDesk, version: int) -> None:
    settle(desk, group="classic")
    commit(desk, ("orders", 0), group="simple")
    commit(desk, ("orders", 0), group="")
    enter(desk)
    beat(desk, "m1", -1)
    asked = {
        "classic": ErrorCode.NON_EMPTY_GROUP,
        "nowhere": ErrorCode.GROUP_ID_NOT_FOUND,
        "simple": ErrorCode.NONE,
        "away": ErrorCode.NOT_COORDINATOR,
        "": ErrorCode.NONE,
        GROUP: ErrorCode.NONE,
    }

    assert ask(GroupHandlers(desk, away={"away"}), *asked, version=version) == [*asked.items()]

    assert desk.shard.group("classic") is not None
    assert desk.shard.group(GROUP) is None
    assert not list(desk.shard.offsets.groups())


def test_a_group_with_members_of_the_consumer_protocol_stays(desk: GroupDesk) -> None:
    enter(desk)

    assert ask(GroupHandlers(desk), GROUP) == [(GROUP, ErrorCode.NON_EMPTY_GROUP)]


def test_a_group_that_is_named_twice_is_deleted_and_answered_once(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0), group="simple")

    assert ask(GroupHandlers(desk), "simple", "nowhere", "simple") == [
        ("simple", ErrorCode.NONE),
        ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_the_answer_comes_once_all_of_it_is_safe(desk: GroupDesk) -> None:
    for group_id in ("one", "two"):
        commit(desk, ("orders", 0), group=group_id)
    handlers = GroupHandlers(desk)
    request = DeleteGroupsRequest(groups_names=["one", "nowhere", "two"])

    with handlers.waiting():
        line = handlers.start(delete_groups, request, 2)
        assert line.answers == []

    (answer,) = line.answers
    assert [(result.group_id, result.error_code) for result in answer.results] == [
        ("one", ErrorCode.NONE),
        ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND),
        ("two", ErrorCode.NONE),
    ]


def test_no_group_is_named_and_none_is_answered(desk: GroupDesk) -> None:
    assert ask(GroupHandlers(desk)) == []


def test_a_request_about_too_many_groups_deletes_none_of_them(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0), group="simple")
    group_ids = ["simple", *map(str, range(1_000))]

    answers = ask(GroupHandlers(desk), *group_ids)

    assert answers == [(group_id, ErrorCode.INVALID_REQUEST) for group_id in group_ids]
    assert desk.shard.offsets.of("simple")
