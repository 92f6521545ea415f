"""ListGroups: which groups are listed, and what the answer says where some cannot be."""

from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.list_groups import ListGroupsRequest
from brokers.server.handlers import list_groups
from tests.brokers.coordination.groups.test_shard import GROUP, commit, desk, enter, settle
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import GroupHandlers

__all__ = ["desk"]


def ask(handlers: GroupHandlers, version: int = 5, **filters: Any) -> Any:
    return handlers.ask(list_groups, ListGroupsRequest(**filters), version)


def ids(answer: Any) -> list[str]:
    return sorted(group.group_id for group in answer.groups)


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists_as_much_as_it_can_say(desk: GroupDesk, version: int) -> None:
    enter(desk)

    answer = ask(GroupHandlers(desk), version)

    assert answer.error_code == ErrorCode.NONE
    (group,) = answer.groups
    assert (group.group_id, group.protocol_type) == (GROUP, "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("consumer" if version >= 5 else "")


def test_where_there_are_no_groups_none_are_listed(desk: GroupDesk) -> None:
    answer = ask(GroupHandlers(desk))

    assert (answer.error_code, answer.groups) == (ErrorCode.NONE, [])


def test_a_request_may_ask_for_states_and_types(desk: GroupDesk) -> None:
    enter(desk)
    settle(desk, group="classic")
    commit(desk, ("orders", 0), group="simple")
    handlers = GroupHandlers(desk)

    assert ids(ask(handlers)) == sorted([GROUP, "classic", "simple"])
    assert ids(ask(handlers, states_filter=["STABLE"])) == sorted([GROUP, "classic"])
    assert ids(ask(handlers, types_filter=["Classic"])) == ["classic", "simple"]
    assert ids(ask(handlers, states_filter=["empty"], types_filter=["classic"])) == ["simple"]
    assert ids(ask(handlers, states_filter=["nonsense"])) == []
    assert ids(ask(handlers, types_filter=["share"])) == []


def test_while_some_groups_are_being_read_the_others_are_listed(desk: GroupDesk) -> None:
    enter(desk)

    answer = ask(GroupHandlers(desk, is_loading=True))

    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ids(answer) == [GROUP]


def test_a_broker_that_has_not_joined_the_cluster_lists_nothing(desk: GroupDesk) -> None:
    enter(desk)

    answer = ask(GroupHandlers(desk, is_serving=False))

    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])


def test_an_answer_has_an_end(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_groups, "MAX_LISTED", 3)
    for number in range(5):
        commit(desk, ("orders", 0), group=f"group-{number}")

    answer = ask(GroupHandlers(desk))

    assert answer.error_code == ErrorCode.NONE
    assert len(ids(answer)) == 3
