"""Groups over the wire, asked of a broker of ours that serves groups that a test makes up."""

from collections.abc import Iterator

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.groups import Groups
from gateway.kafka.offset_listing import WINDOW
from gateway.kafka.values import GroupState, GroupType, Place
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, MadeUpMember, served

pytestmark = pytest.mark.slow

ORDERS = [Place(topic="orders", partition=index) for index in range(3)]


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[GroupService, Connection]]:
    service = GroupService()
    folder = tmp_path_factory.mktemp("broker")
    with served(service), broker_beside(folder, topics={"orders": 3, "clicks": 1}) as broker:
        yield service, Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def service(started: tuple[GroupService, Connection]) -> GroupService:
    service, _ = started
    service.groups.clear()
    return service


@pytest.fixture
def groups(started: tuple[GroupService, Connection], service: GroupService) -> Groups:
    return Groups(started[1])


def active() -> MadeUpGroup:
    return MadeUpGroup(
        members=[
            MadeUpMember(id="m-2", assignment={"orders": [2]}),
            MadeUpMember(id="m-1", client_id="a", assignment={"orders": [1, 0]}),
        ],
        offsets={("orders", 0): 7},
    )


def test_groups_are_listed_by_name(service: GroupService, groups: Groups) -> None:
    service.groups |= {"b": active(), "a": MadeUpGroup()}

    found = groups.summaries()

    assert [(g.name, g.state, g.type, g.is_simple) for g in found] == [
        ("a", GroupState.EMPTY, GroupType.CLASSIC, False),
        ("b", GroupState.STABLE, GroupType.CLASSIC, False),
    ]


def test_a_list_is_narrowed_by_state_and_type(service: GroupService, groups: Groups) -> None:
    service.groups |= {"b": active(), "a": MadeUpGroup()}

    assert [g.name for g in groups.summaries(states=[GroupState.STABLE])] == ["b"]
    assert groups.summaries(types=[GroupType.CONSUMER]) == []


def test_a_group_is_described_down_to_who_reads_what(service: GroupService, groups: Groups) -> None:
    service.groups["b"] = active()

    [group] = groups.describe(["b", "b"])

    assert (group.state, group.assignor, group.coordinator) == (GroupState.STABLE, "range", 1)
    assert [member.id for member in group.members] == ["m-1", "m-2"]
    assert group.members[0].assignment == (ORDERS[0], ORDERS[1])
    assert group.members[0].client_id == "a"


def test_a_group_of_the_consumer_protocol_is_described_with_where_it_is_going(
    service: GroupService, groups: Groups
) -> None:
    mover = MadeUpMember(id="m", assignment={"orders": [0]}, target={"orders": [0, 2]})
    service.groups |= {"new": MadeUpGroup(type="consumer", members=[mover]), "old": active()}

    new, old = groups.describe(["new", "old"])

    assert (new.type, new.state, new.assignor) == (
        *(GroupType.CONSUMER, GroupState.STABLE),
        "uniform",
    )
    assert new.members[0].assignment == (ORDERS[0],)
    assert new.members[0].target == (ORDERS[0], ORDERS[2])
    assert (old.type, old.members[0].target) == (GroupType.CLASSIC, None)


def test_a_group_that_does_not_exist_is_not_found_and_has_no_offsets(groups: Groups) -> None:
    with pytest.raises(KafkaFailure, match="group nobody: there is no such group") as caught:
        groups.describe(["nobody"])

    assert caught.value.kind is Kind.NOT_FOUND
    assert groups.offsets(["nobody"]) == {"nobody": {}}


def test_what_is_committed_is_what_is_read_back(service: GroupService, groups: Groups) -> None:
    groups.commit("new", {ORDERS[0]: 5, ORDERS[2]: 2**62})

    assert service.groups["new"].offsets == {("orders", 0): 5, ("orders", 2): 2**62}
    assert groups.offsets(["new"]) == {"new": {ORDERS[0]: 5, ORDERS[2]: 2**62}}


def test_offsets_of_many_groups_are_asked_for_in_windows(
    service: GroupService, groups: Groups
) -> None:
    names = [f"g{number}" for number in range(WINDOW + 5)]
    for number, name in enumerate(names):
        service.groups[name] = MadeUpGroup(offsets={("orders", 0): number})

    found = groups.offsets(names)

    assert [found[name][ORDERS[0]] for name in names] == list(range(WINDOW + 5))


def test_a_group_without_members_is_deleted(service: GroupService, groups: Groups) -> None:
    service.groups |= {"a": MadeUpGroup(), "b": MadeUpGroup()}

    groups.delete(["a"])

    assert list(service.groups) == ["b"]


def test_a_group_that_reads_is_in_the_way_of_changes(service: GroupService, groups: Groups) -> None:
    service.groups["b"] = active()

    with pytest.raises(KafkaFailure, match="NON_EMPTY_GROUP") as deletion:
        groups.delete(["b"])
    with pytest.raises(KafkaFailure, match="group b, topic orders, partition 0: the group has"):
        groups.commit("b", {ORDERS[0]: 1})

    assert deletion.value.kind is Kind.CONFLICT
    assert service.groups["b"].offsets == {("orders", 0): 7}


def test_offsets_are_deleted_one_by_one(service: GroupService, groups: Groups) -> None:
    service.groups["a"] = MadeUpGroup(offsets={("orders", 0): 1, ("orders", 1): 2})

    groups.delete_offsets("a", [ORDERS[0]])

    assert service.groups["a"].offsets == {("orders", 1): 2}


def test_offsets_of_a_topic_that_is_read_are_kept(service: GroupService, groups: Groups) -> None:
    service.groups["b"] = active()

    with pytest.raises(KafkaFailure, match="GROUP_SUBSCRIBED_TO_TOPIC") as caught:
        groups.delete_offsets("b", [ORDERS[0]])

    assert caught.value.kind is Kind.CONFLICT
    assert caught.value.value == "group b, topic orders, partition 0"


def test_no_groups_are_no_question(groups: Groups) -> None:
    assert groups.describe([]) == []
    assert groups.offsets([]) == {}


def test_brokers_without_groups_say_so_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(None), broker_beside(tmp_path_factory.mktemp("bare")) as broker:
        groups = Groups(Connection(bootstrap=broker.bootstrap))
        for ask in (
            groups.summaries,
            lambda: groups.describe(["g"]),
            lambda: groups.offsets(["g"]),
            lambda: groups.commit("g", {ORDERS[0]: 1}),
            lambda: groups.delete(["g"]),
            lambda: groups.delete_offsets("g", ORDERS),
        ):
            with pytest.raises(KafkaFailure, match="the brokers serve no consumer groups"):
                ask()


def test_each_partition_that_is_refused_is_told(service: GroupService, groups: Groups) -> None:
    service.groups |= {"still": MadeUpGroup(offsets={("orders", 0): 7}), "reading": active()}

    assert groups.commit_each("still", {ORDERS[0]: 1}) == {}
    refused = groups.commit_each("reading", {ORDERS[0]: 1, ORDERS[1]: 2})
    kept = groups.delete_offsets_each("reading", [ORDERS[0]])

    assert refused.keys() == set(ORDERS[:2])
    assert {failed.name for failed in refused.values()} == {"UNKNOWN_MEMBER_ID"}
    assert [failed.name for failed in kept.values()] == ["GROUP_SUBSCRIBED_TO_TOPIC"]
    assert service.groups["reading"].offsets == {("orders", 0): 7}
