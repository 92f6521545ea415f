"""Proposals to a cluster, accepted or refused with Kafka's codes."""

import pytest

from brokers.cluster import decisions
from brokers.cluster.image import PartitionState, ResourceType
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Outcome,
    ProducerIdsResult,
    TopicResult,
)
from brokers.protocol.errors import ErrorCode
from tests.brokers.cluster.refusals import (
    APPEND,
    BROKER,
    DELETE,
    REFUSED,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    edits,
)
from tests.fakes.twin import Twin


@pytest.fixture
def twin() -> Twin:
    """Brokers 1 and 2, broker 3 fenced; topics orders (3 partitions), a.b, and set (configs)."""
    made = Twin()
    made.register_now()
    made.register_now()
    made.register_now(is_fenced=True)
    made.create_topic("orders", partitions=3)
    made.create_topic("a.b")
    made.create_topic("set", configs={"retention.ms": "5", "cleanup.policy": "compact"})
    return made


def outcome(twin: Twin, action: Action) -> Outcome:
    (only,) = twin.propose_now(action)
    return only


def accepted(twin: Twin, action: Action) -> Outcome:
    done = outcome(twin, action)
    assert done.error is ErrorCode.NONE, done
    return done


def configs(twin: Twin, name: str, kind: ResourceType = TOPIC) -> dict[str, str]:
    return dict(twin.image.configs_of(kind, name))


@pytest.mark.parametrize(("action", "code", "words"), REFUSED)
def test_invalid_proposal_is_refused_with_kafkas_code_and_a_reason(
    twin: Twin, action: Action, code: ErrorCode, words: str
) -> None:
    before = twin.image

    refused = outcome(twin, action)

    assert refused.error is code, refused
    assert words in refused.message
    assert twin.image is before


def test_a_topic_without_numbers_has_the_clusters(twin: Twin) -> None:
    accepted(twin, alter("", ("num.partitions", SET, "4"), kind=BROKER))

    result = accepted(twin, CreateTopic(name="new")).result

    assert isinstance(result, TopicResult)
    assert (result.partitions, result.replication_factor) == (4, 1)


def test_partitions_are_placed_on_brokers_that_serve(twin: Twin) -> None:
    accepted(twin, CreateTopic(name="new", partitions=10))

    leaders = {state.leader for state in twin.image.topics["new"].partitions}
    assert leaders == {1, 2}


def test_topics_of_one_partition_are_spread(twin: Twin) -> None:
    actions = [CreateTopic(name=f"new-{number}") for number in range(10)]

    twin.propose_now(*actions)

    leaders = [twin.image.topics[action.name].partitions[0].leader for action in actions]
    assert leaders.count(1) == leaders.count(2) == 5


def test_an_assignment_by_hand_is_followed(twin: Twin) -> None:
    accepted(twin, CreateTopic(name="new", assignments=((2,), (1,), (2,))))

    partitions = twin.image.topics["new"].partitions
    assert [state.leader for state in partitions] == [2, 1, 2]
    assert partitions[0] == PartitionState(replicas=(2,), isr=(2,), leader=2)


def test_without_a_broker_nothing_can_be_placed() -> None:
    refused = outcome(Twin(), CreateTopic(name="new"))

    assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "no broker" in refused.message


def test_the_cluster_has_room_for_a_number_of_partitions(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MAX_PARTITIONS", 6)

    refused = [
        outcome(twin, CreateTopic(name="new", partitions=2)),
        outcome(twin, CreatePartitions(name="orders", count=5)),
        outcome(twin, CreateTopic(name="new", assignments=((1,), (1,)))),
    ]
    accepted(twin, CreateTopic(name="last"))

    assert {each.error for each in refused} == {ErrorCode.POLICY_VIOLATION}
    assert all("has 5 partitions and would have 7" in each.message for each in refused)


def test_deleting_makes_room_again(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MAX_PARTITIONS", 5)
    assert outcome(twin, CreateTopic(name="new")).error is ErrorCode.POLICY_VIOLATION

    accepted(twin, DeleteTopic(name="orders"))

    accepted(twin, CreateTopic(name="new", partitions=3))


def test_a_name_is_free_for_its_look_alike_once_it_is_deleted(twin: Twin) -> None:
    accepted(twin, DeleteTopic(name="a.b"))

    accepted(twin, CreateTopic(name="a_b"))


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_created_and_deleted_like_others(twin: Twin, name: str) -> None:
    accepted(twin, CreateTopic(name=name, configs=(("cleanup.policy", "compact"),)))
    accepted(twin, DeleteTopic(name=name))


def test_an_internal_topic_keeps_its_number_of_partitions(twin: Twin) -> None:
    name = "__consumer_offsets"
    accepted(twin, CreateTopic(name=name, partitions=2))

    refused = outcome(twin, CreatePartitions(name=name, count=4))

    assert refused.error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert len(twin.image.topics[name].partitions) == 2


def test_new_partitions_are_placed_after_the_last_one(twin: Twin) -> None:
    accepted(twin, CreateTopic(name="new", assignments=((1,),)))

    result = accepted(twin, CreatePartitions(name="new", count=4)).result

    assert [state.leader for state in twin.image.topics["new"].partitions] == [1, 2, 1, 2]
    assert isinstance(result, TopicResult)
    assert result.partitions == 4


def test_new_partitions_may_be_assigned_by_hand(twin: Twin) -> None:
    accepted(twin, CreatePartitions(name="orders", count=5, assignments=((2,), (2,))))

    leaders = [state.leader for state in twin.image.topics["orders"].partitions]
    assert leaders[3:] == [2, 2]


def test_edits_leave_other_keys_as_they_are(twin: Twin) -> None:
    accepted(twin, alter("set", ("segment.ms", SET, "7"), ("retention.ms", DELETE, None)))

    assert configs(twin, "set") == {"segment.ms": "7", "cleanup.policy": "compact"}


def test_the_older_call_unsets_what_it_does_not_name(twin: Twin) -> None:
    action = AlterConfigs(
        resource_type=TOPIC, name="set", edits=edits(("segment.ms", SET, "7")), replaces_all=True
    )

    accepted(twin, action)

    assert configs(twin, "set") == {"segment.ms": "7"}


def test_items_are_appended_to_lists_once(twin: Twin) -> None:
    accepted(twin, alter("set", ("cleanup.policy", APPEND, "delete,compact")))
    assert configs(twin, "set")["cleanup.policy"] == "compact,delete"

    # A config that is not set is a list as well: the default.
    accepted(twin, alter("orders", ("cleanup.policy", APPEND, "compact")))
    assert configs(twin, "orders")["cleanup.policy"] == "delete,compact"


def test_items_are_subtracted_from_lists(twin: Twin) -> None:
    accepted(twin, alter("set", ("cleanup.policy", APPEND, "delete")))

    accepted(twin, alter("set", ("cleanup.policy", SUBTRACT, "compact,unknown")))

    assert configs(twin, "set")["cleanup.policy"] == "delete"


def test_a_key_that_is_unknown_or_not_set_can_be_deleted(twin: Twin) -> None:
    before = twin.image

    accepted(twin, alter("set", ("segment.ms", DELETE, None), ("gone.key", DELETE, None)))

    assert twin.image is before


def test_brokers_are_configured_one_by_one_and_together(twin: Twin) -> None:
    accepted(twin, alter("", ("log.retention.ms", SET, "5"), kind=BROKER))
    accepted(twin, alter("2", ("log.retention.ms", SET, "6"), kind=BROKER))
    accepted(twin, alter("3", ("log.cleanup.policy", APPEND, "compact"), kind=BROKER))

    assert configs(twin, "", BROKER) == {"log.retention.ms": "5"}
    assert configs(twin, "2", BROKER) == {"log.retention.ms": "6"}
    assert configs(twin, "3", BROKER) == {"log.cleanup.policy": "delete,compact"}


def test_too_many_edits_are_refused_before_they_are_looked_at(twin: Twin) -> None:
    many = [(f"key-{number}", SET, "1") for number in range(1001)]

    refused = outcome(twin, alter("orders", *many))

    assert refused.error is ErrorCode.INVALID_REQUEST
    assert "1001" in refused.message


def test_blocks_of_producer_ids_do_not_overlap(twin: Twin) -> None:
    results = [accepted(twin, AllocateProducerIds()).result for _ in range(3)]

    assert results == [ProducerIdsResult(first=first, count=1000) for first in (0, 1000, 2000)]


def test_a_block_of_producer_ids_begins_above_what_was_seen(twin: Twin) -> None:
    seen = [
        accepted(twin, AllocateProducerIds(highest_seen=seen, skip=skip)).result
        for seen, skip in ((4_999, 0), (70, 0), (-1, 100))
    ]

    assert seen == [ProducerIdsResult(first=first, count=1000) for first in (5_000, 6_000, 7_100)]


def test_the_last_producer_ids_are_given_away_and_then_refused(twin: Twin) -> None:
    last = accepted(twin, AllocateProducerIds(highest_seen=2**63 - 1002, skip=2**40)).result

    refused = outcome(twin, AllocateProducerIds())

    assert last == ProducerIdsResult(first=2**63 - 1001, count=1000)
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert str(2**63 - 2) in refused.message


def test_refusals_repeat_no_more_than_is_needed(twin: Twin) -> None:
    long = "x" * 100_000

    for action in (
        CreateTopic(name=long),
        CreateTopic(name="n", configs=((long, None),)),
        DeleteTopic(name=long),
        CreatePartitions(name=long, count=1),
        alter("orders", (long, SET, long)),
        alter("orders", (long, APPEND, long)),
        alter(long, ("log.retention.ms", SET, "5"), kind=BROKER),
    ):
        assert len(outcome(twin, action).message) < 400


@pytest.mark.parametrize(
    "action",
    [
        CreateTopic(name="new", assignments=((1,) * 100_000,)),
        CreateTopic(name="new", configs=(("cleanup.policy", "\x01" * 1000),)),
    ],
)
def test_a_refusal_repeats_only_so_much_of_what_it_refuses(twin: Twin, action: Action) -> None:
    refused = outcome(twin, action)

    assert refused.error is not ErrorCode.NONE
    assert len(refused.message) < 2_000
