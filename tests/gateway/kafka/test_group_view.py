"""A group at one moment, of a broker of ours that serves groups that a test makes up."""

from collections.abc import Iterator

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.group_view import GroupView, view_of
from gateway.kafka.groups import Groups
from gateway.kafka.values import GroupState, Place
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, MadeUpMember, served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    service = GroupService()
    service.groups |= {
        "still": MadeUpGroup(offsets={("orders", 0): 4}),
        "reading": MadeUpGroup(
            members=[MadeUpMember(id="m", assignment={"orders": [0]})], offsets={("orders", 0): 4}
        ),
        "moving": MadeUpGroup(
            type="consumer", members=[MadeUpMember(id="m", target={"clicks": [0]})]
        ),
    }
    folder = tmp_path_factory.mktemp("broker")
    with served(service), broker_beside(folder, topics={"orders": 1, "clicks": 1}) as broker:
        yield Groups(Connection(bootstrap=broker.bootstrap))


@pytest.fixture
def view(groups: Groups, request: pytest.FixtureRequest) -> GroupView:
    return view_of(groups, request.param)


@pytest.mark.parametrize("view", ["still"], indirect=True)
def test_a_group_without_members_is_there_and_empty(view: GroupView) -> None:
    assert (view.state, view.is_there, view.has_members) == (GroupState.EMPTY, True, False)
    assert view.committed == {Place(topic="orders", partition=0): 4}
    assert view.in_words() == "is Empty with no members"


@pytest.mark.parametrize("view", ["nobody"], indirect=True)
def test_a_group_that_does_not_exist_is_dead_and_no_failure(view: GroupView) -> None:
    assert (view.state, view.is_there, view.has_members) == (GroupState.DEAD, False, False)
    assert view.committed == {}
    assert view.in_words() == "does not exist"


@pytest.mark.parametrize("view", ["reading"], indirect=True)
def test_a_group_that_reads_tells_what(view: GroupView) -> None:
    assert view.has_members
    assert view.in_words() == "is Stable with 1 member"
    assert view.reads("orders")
    assert not view.reads("clicks")


@pytest.mark.parametrize("view", ["moving"], indirect=True)
def test_what_a_member_is_about_to_read_is_read(view: GroupView) -> None:
    assert view.reads("clicks")
