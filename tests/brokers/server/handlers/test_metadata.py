"""Metadata: what every client asks first, in fourteen versions."""

from collections.abc import Iterator, Sequence

import pytest

from brokers.cluster.proposals import CreateTopic, Outcome, Proposal
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from brokers.protocol.schema import ZERO_UUID
from brokers.server import tasks
from brokers.server.handlers import metadata
from brokers.server.handlers.metadata import MAX_CREATED, PARTITIONS_AT_ONCE, TOPICS_AT_ONCE
from tests.fakes.asking import Desk

VERSIONS = range(14)
NO_TOPIC = b"\xee" * 16


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk(brokers=2) as opened:
        opened.twin.create_topic("orders", partitions=2)
        opened.twin.create_topic("__consumer_offsets")
        opened.follow()
        yield opened


def ask(desk: Desk, version: int, request: MetadataRequest) -> MetadataResponse:
    answer = desk.ask(metadata, version, request)
    assert isinstance(answer, MetadataResponse)
    return answer


def named(*names: str, may_create: bool = True) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=may_create,
    )


def errors(answer: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in answer.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_and_the_cluster_are_told(desk: Desk, version: int) -> None:
    answer = ask(desk, version, named("orders"))

    assert [(each.node_id, each.host, each.port, each.rack) for each in answer.brokers] == [
        (1, "broker-1.test", 9091, None),
        (2, "broker-2.test", 9092, None),
    ]
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == (desk.twin.cluster_id if version >= 2 else None)
    assert (answer.throttle_time_ms, answer.error_code) == (0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_told_in_full(desk: Desk, version: int) -> None:
    (topic,) = ask(desk, version, named("orders")).topics

    known = desk.twin.image.topics["orders"]
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "orders", False)
    assert topic.topic_id == (known.id if version >= 10 else ZERO_UUID)
    for index, (state, told) in enumerate(zip(known.partitions, topic.partitions, strict=True)):
        assert (told.error_code, told.partition_index, told.leader_id) == (0, index, state.leader)
        assert (told.replica_nodes, told.isr_nodes) == ([state.leader], [state.leader])
        assert told.leader_epoch == (0 if version >= 7 else -1)
        assert told.offline_replicas == []


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_told_to_who_asks_for_all(desk: Desk, version: int) -> None:
    answer = ask(desk, version, MetadataRequest(topics=[] if version == 0 else None))

    assert errors(answer) == {"orders": 0, "__consumer_offsets": 0}


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_no_topics_are_told_to_who_asks_for_none(desk: Desk, version: int) -> None:
    answer = ask(desk, version, MetadataRequest(topics=[]))

    assert answer.topics == []
    assert len(answer.brokers) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_asked_for_twice_is_told_once_and_in_the_order_of_asking(
    desk: Desk, version: int
) -> None:
    answer = ask(desk, version, named("orders", "__consumer_offsets", "orders"))

    assert [topic.name for topic in answer.topics] == ["orders", "__consumer_offsets"]
    assert [topic.is_internal for topic in answer.topics] == [False, version >= 1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_that_is_fenced_is_not_told_and_leads_nothing(desk: Desk, version: int) -> None:
    leader = desk.twin.image.topics["orders"].partitions[0].leader
    desk.twin.set_fenced(leader, is_fenced=True)
    desk.follow()

    answer = ask(desk, version, named("orders"))

    assert leader not in [broker.node_id for broker in answer.brokers]
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert partition.leader_id == -1
    assert partition.offline_replicas == ([leader] if version >= 5 else [])


def test_while_no_broker_is_let_in_the_client_is_cut_off_and_asks_again(desk: Desk) -> None:
    for broker in list(desk.twin.image.brokers):
        desk.twin.set_fenced(broker, is_fenced=True)
    desk.follow()

    for request in (named("orders"), named("new"), MetadataRequest(topics=None)):
        with pytest.raises(AssertionError, match="all brokers of the cluster are fenced"):
            ask(desk, 12, request)


@pytest.mark.parametrize("version", VERSIONS[8:])
def test_operations_are_told_to_who_asks(desk: Desk, version: int) -> None:
    request = named("orders", "nobody", may_create=False)
    untold = ask(desk, version, request)
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = version <= 10
    told = ask(desk, version, request)

    assert [topic.topic_authorized_operations for topic in untold.topics] == [-(2**31)] * 2
    assert untold.cluster_authorized_operations == -(2**31)
    assert [topic.topic_authorized_operations for topic in told.topics] == [3576] * 2
    assert told.cluster_authorized_operations == (8096 if version <= 10 else -(2**31))


# -- topics that are not there -------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_is_none_is_refused(desk: Desk, version: int) -> None:
    answer = ask(desk, version, named("a/b", "", "x" * 250, "orders"))

    assert errors(answer) == {
        "a/b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "x" * 250: ErrorCode.INVALID_TOPIC_EXCEPTION,
        "orders": ErrorCode.NONE,
    }
    assert desk.store.proposals == []


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_a_topic_that_must_not_be_created_is_unknown(desk: Desk, version: int) -> None:
    answer = ask(desk, version, named("nobody", may_create=False))

    assert errors(answer) == {"nobody": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert desk.store.proposals == []


def test_creation_can_be_switched_off() -> None:
    with Desk(defaults={"auto.create.topics.enable": "false"}) as desk:
        answer = ask(desk, 12, named("new"))

    assert errors(answer) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert desk.store.proposals == []


@pytest.mark.parametrize("version", VERSIONS[10:12])
@pytest.mark.parametrize(("name", "topic_id"), [(None, ZERO_UUID), ("orders", NO_TOPIC)])
def test_ids_are_refused_in_the_versions_that_only_show_them(
    desk: Desk, version: int, name: str | None, topic_id: bytes
) -> None:
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=name, topic_id=topic_id),
            MetadataRequestTopic(name="orders"),
        ]
    )

    answer = ask(desk, version, request)

    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", VERSIONS[12:])
def test_a_topic_is_found_by_its_id(desk: Desk, version: int) -> None:
    topic_id = desk.twin.image.topics["orders"].id
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=None, topic_id=topic_id),
            MetadataRequestTopic(name=None, topic_id=NO_TOPIC),
        ]
    )

    found, missing = ask(desk, version, request).topics

    assert (found.name, found.topic_id, found.error_code) == ("orders", topic_id, 0)
    assert len(found.partitions) == 2
    assert (missing.name, missing.topic_id) == (None, NO_TOPIC)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


# -- creation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_request_that_creates_a_topic_is_told_that_it_is_unknown(
    desk: Desk, version: int
) -> None:
    first = ask(desk, version, named("new", "orders"))
    second = ask(desk, version, named("new", "orders"))

    assert errors(first) == {
        "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders": ErrorCode.NONE,
    }
    assert (first.topics[0].partitions, first.topics[0].topic_id) == ([], ZERO_UUID)
    assert errors(second) == {"new": ErrorCode.NONE, "orders": ErrorCode.NONE}
    assert second.topics[0].partitions[0].leader_id in {1, 2}
    assert len(desk.store.proposals) == 1


def test_a_topic_by_id_is_told_beside_one_that_is_created(desk: Desk) -> None:
    known = desk.twin.image.topics["orders"].id
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name="new"),
            MetadataRequestTopic(name=None, topic_id=known),
        ]
    )

    answer = ask(desk, 12, request)

    assert errors(answer) == {
        "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders": ErrorCode.NONE,
    }


def test_creation_is_proposed_with_the_defaults_of_the_cluster(desk: Desk) -> None:
    ask(desk, 12, named("new", "newer", "new"))

    assert [proposal.action for proposal in desk.store.proposals] == [
        CreateTopic(name="new"),
        CreateTopic(name="newer"),
    ]


def test_internal_topics_are_left_to_whoever_knows_their_shape() -> None:
    with Desk() as desk:
        answer = ask(desk, 12, named("__consumer_offsets"))

    assert errors(answer) == {"__consumer_offsets": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert answer.topics[0].is_internal


def test_a_name_too_close_to_another_is_not_created(desk: Desk) -> None:
    desk.twin.create_topic("a.b")
    desk.follow()

    answer = ask(desk, 12, named("a_b"))

    assert errors(answer) == {"a_b": ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_while_the_store_is_away_the_client_is_told_to_ask_again(desk: Desk) -> None:
    desk.store.fault = ConnectionError("away")

    answer = ask(desk, 12, named("new", "orders"))

    assert errors(answer) == {
        "new": ErrorCode.LEADER_NOT_AVAILABLE,
        "orders": ErrorCode.NONE,
    }


def test_somebody_faster_is_no_failure(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def too_late(proposals: Sequence[Proposal]) -> list[Outcome]:
        desk.twin.create_topic("new")
        desk.follow()
        return desk.twin.decide(proposals)

    monkeypatch.setattr(desk.store, "propose", too_late)

    assert errors(ask(desk, 12, named("new"))) == {"new": ErrorCode.NONE}


def test_one_request_creates_no_more_than_one_transaction_takes(desk: Desk) -> None:
    names = [f"t{number}" for number in range(MAX_CREATED + 2)]

    answer = ask(desk, 12, named(*names))

    assert len(desk.store.proposals) == MAX_CREATED
    assert [topic.name for topic in answer.topics] == names
    assert [topic.error_code for topic in answer.topics[-3:]] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
    ]


def test_a_broker_that_has_not_joined_says_nothing_against_a_topic(desk: Desk) -> None:
    desk.context.is_serving = False

    answer = ask(desk, 12, named("nobody", "orders"))

    assert errors(answer) == {
        "nobody": ErrorCode.LEADER_NOT_AVAILABLE,
        "orders": ErrorCode.NONE,
    }
    assert desk.store.proposals == []


# -- many topics ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_named", [False, True])
def test_many_topics_are_encoded_in_slices_and_then_kept(desk: Desk, *, is_named: bool) -> None:
    count = PARTITIONS_AT_ONCE * 3
    for first in range(0, count, MAX_CREATED):
        part = range(first, min(first + MAX_CREATED, count))
        desk.twin.propose_now(*(CreateTopic(name=f"t{number}") for number in part))
    desk.follow()
    names = list(desk.twin.image.topics)
    everything = named(*names) if is_named else MetadataRequest(topics=None)

    cold = ask(desk, 12, everything)
    kept = len(desk.context.metadata_cache)
    warm = ask(desk, 12, everything)

    assert len(cold.topics) == count + 2 == kept
    assert cold.topics == warm.topics


def test_many_names_that_are_none_are_answered_one_by_one(desk: Desk) -> None:
    names = [f"nobody-{number}" for number in range(TOPICS_AT_ONCE * 3)]

    answer = ask(desk, 12, named(*names, "orders", may_create=False))

    assert [topic.name for topic in answer.topics] == [*names, "orders"]
    assert {topic.error_code for topic in answer.topics[:-1]} == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_a_broker_with_too_much_to_do_answers_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_RUNNING", 0)
    desk.twin.create_topic("wide", partitions=PARTITIONS_AT_ONCE + 1)
    desk.follow()

    some = ask(desk, 12, named("new", "wide"))
    everything = ask(desk, 12, MetadataRequest(topics=None))

    assert errors(some) == {"new": ErrorCode.LEADER_NOT_AVAILABLE, "wide": ErrorCode.NONE}
    assert len(everything.topics) == 3
    assert desk.store.proposals == []


def test_a_bug_in_what_takes_longer_ends_the_connection(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(metadata, "encode_answer", broken)

    with pytest.raises(AssertionError, match="failed"):
        ask(desk, 12, named("new"))
