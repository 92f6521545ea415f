"""The part of the contract of metadata stores that is about proposals and their outcomes."""

import asyncio
from collections.abc import Sequence

from brokers.cluster.decisions import PRODUCER_IDS_PER_BLOCK
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Outcome,
    ProducerIdsResult,
)
from brokers.protocol.errors import ErrorCode
from tests.contracts.keeper import (
    Case,
    Keeper,
    Reader,
    done,
    joined,
    new_id,
    proposal,
    refused,
    registration,
    topic_result,
)


async def an_accepted_proposal_arrives_as_a_change(keeper: Keeper) -> None:
    reader = await joined(keeper)

    (outcome,) = await done(reader.store, CreateTopic(name="orders", partitions=3))
    image = await reader.reach(lambda image: image.version >= outcome.version)

    topic = image.topics["orders"]
    result = topic_result(outcome)
    assert (result.name, result.topic_id) == ("orders", topic.id)
    assert (result.partitions, result.replication_factor) == (3, 1)
    assert len(topic.partitions) == 3
    assert topic.version == outcome.version
    assert {state.leader for state in topic.partitions} == {reader.registered.broker_id}
    assert image.topic_by_id(topic.id) is topic
    await reader.close()


async def the_same_proposal_again_is_answered_and_not_done_again(keeper: Keeper) -> None:
    reader = await joined(keeper)
    asked = [proposal(CreateTopic(name="once")), proposal(AllocateProducerIds())]

    first = await reader.store.propose(asked)
    again = await reader.store.propose(asked)

    assert again == first
    assert first[0].error is ErrorCode.NONE
    await reader.close()


async def a_proposal_that_is_only_checked_changes_nothing(keeper: Keeper) -> None:
    reader = await joined(keeper)

    (outcome,) = await reader.store.propose(
        [proposal(CreateTopic(name="planned", partitions=2), validate_only=True)]
    )
    (real,) = await done(reader.store, CreateTopic(name="planned", partitions=4))
    image = await reader.reach(lambda image: image.version >= real.version)

    assert outcome.error is ErrorCode.NONE
    assert topic_result(outcome).partitions == 2
    assert len(image.topics["planned"].partitions) == 4
    await reader.close()


async def one_call_does_what_it_can(keeper: Keeper) -> None:
    reader = await joined(keeper)

    outcomes = await reader.store.propose(
        [
            proposal(CreateTopic(name="a.b")),
            proposal(CreateTopic(name="a_b")),
            proposal(CreateTopic(name="a.b")),
            proposal(CreatePartitions(name="a.b", count=4)),
            proposal(CreateTopic(name="c")),
        ]
    )
    await reader.reach(lambda image: image.version >= outcomes[0].version)

    assert [outcome.error for outcome in outcomes] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert reader.image is not None
    assert {name: len(t.partitions) for name, t in reader.image.topics.items()} == {
        "a.b": 4,
        "c": 1,
    }
    await reader.close()


async def a_deleted_topic_is_remembered_and_its_configuration_goes(keeper: Keeper) -> None:
    reader = await joined(keeper)
    (created,) = await done(
        reader.store, CreateTopic(name="orders", configs=(("retention.ms", "5"),))
    )

    (outcome,) = await done(reader.store, DeleteTopic(name="orders"))
    image = await reader.reach(lambda image: image.version >= outcome.version)

    topic_id = topic_result(created).topic_id
    assert topic_result(outcome).topic_id == topic_id
    assert "orders" not in image.topics
    assert image.deleted[topic_id].name == "orders"
    assert image.deleted[topic_id].version == outcome.version
    assert not image.configs_of(ResourceType.TOPIC, "orders")
    await reader.close()


async def a_topic_of_a_deleted_name_has_another_id(keeper: Keeper) -> None:
    reader = await joined(keeper)

    (first,) = await done(reader.store, CreateTopic(name="orders"))
    await done(reader.store, DeleteTopic(topic_id=topic_result(first).topic_id))
    (second,) = await done(reader.store, CreateTopic(name="orders"))
    image = await reader.reach(lambda image: image.version >= second.version)

    assert topic_result(second).topic_id != topic_result(first).topic_id
    assert image.topics["orders"].id == topic_result(second).topic_id
    assert topic_result(first).topic_id in image.deleted
    await reader.close()


async def configurations_are_whole_values(keeper: Keeper) -> None:
    reader = await joined(keeper)
    await done(reader.store, CreateTopic(name="orders", configs=(("retention.ms", "5"),)))

    (outcome,) = await done(
        reader.store,
        AlterConfigs(
            resource_type=ResourceType.TOPIC,
            name="orders",
            edits=(ConfigEdit(key="segment.ms", value="7"),),
        ),
    )
    image = await reader.reach(lambda image: image.version >= outcome.version)

    assert dict(image.configs_of(ResourceType.TOPIC, "orders")) == {
        "retention.ms": "5",
        "segment.ms": "7",
    }
    await reader.close()


async def configurations_of_brokers_have_names_of_their_own(keeper: Keeper) -> None:
    reader = await joined(keeper)
    broker = str(reader.registered.broker_id)

    def altered(name: str, value: str) -> AlterConfigs:
        edit = ConfigEdit(key="log.retention.ms", value=value)
        return AlterConfigs(resource_type=ResourceType.BROKER, name=name, edits=(edit,))

    outcomes = await done(reader.store, altered("", "5"), altered(broker, "6"))
    image = await reader.reach(lambda image: image.version >= outcomes[-1].version)

    assert image.configs_of(ResourceType.BROKER, "")["log.retention.ms"] == "5"
    assert image.configs_of(ResourceType.BROKER, broker)["log.retention.ms"] == "6"
    await reader.close()


async def a_change_that_changes_nothing_is_accepted(keeper: Keeper) -> None:
    reader = await joined(keeper)
    await done(reader.store, CreateTopic(name="orders", configs=(("retention.ms", "5"),)))
    same = AlterConfigs(
        resource_type=ResourceType.TOPIC,
        name="orders",
        edits=(ConfigEdit(key="retention.ms", value="5"),),
    )

    outcomes = await done(reader.store, same, same)
    image = await reader.reach(lambda image: image.version >= outcomes[0].version)

    assert image.configs_of(ResourceType.TOPIC, "orders")["retention.ms"] == "5"
    await reader.close()


async def producer_ids_are_given_once(keeper: Keeper) -> None:
    first, second = await joined(keeper), await joined(keeper)

    outcomes = [
        *await done(first.store, AllocateProducerIds(), AllocateProducerIds()),
        *await done(second.store, AllocateProducerIds()),
    ]

    blocks = [outcome.result for outcome in outcomes]
    ids: set[int] = set()
    for block in blocks:
        assert isinstance(block, ProducerIdsResult)
        assert block.count == PRODUCER_IDS_PER_BLOCK
        ids |= set(range(block.first, block.first + block.count))
    assert len(ids) == 3 * PRODUCER_IDS_PER_BLOCK
    await first.close()
    await second.close()


async def producer_ids_begin_above_what_a_broker_has_seen(keeper: Keeper) -> None:
    first = await joined(keeper)
    (before,) = await done(first.store, AllocateProducerIds())
    seen = _first_of(before) + 50_000_000
    reporting = await joined(keeper, registration(highest_producer_id=seen))

    (after_registration,) = await done(first.store, AllocateProducerIds())
    (after_report,) = await done(
        first.store, AllocateProducerIds(highest_seen=_first_of(after_registration) + 70_000)
    )

    assert _first_of(after_registration) > seen
    assert _first_of(after_report) > _first_of(after_registration) + 70_000
    await first.close()
    await reporting.close()


def _first_of(outcome: Outcome) -> int:
    assert isinstance(outcome.result, ProducerIdsResult)
    return outcome.result.first


async def refusals_have_a_code_a_sentence_and_a_version(keeper: Keeper) -> None:
    reader = await joined(keeper)
    (created,) = await done(reader.store, CreateTopic(name="orders", partitions=2))

    outcomes = [
        await refused(reader.store, action, code)
        for action, code in (
            (CreateTopic(name="orders"), ErrorCode.TOPIC_ALREADY_EXISTS),
            (CreateTopic(name="or ders"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (CreateTopic(name="new", partitions=0), ErrorCode.INVALID_PARTITIONS),
            (
                CreateTopic(name="new", replication_factor=3),
                ErrorCode.INVALID_REPLICATION_FACTOR,
            ),
            (CreateTopic(name="new", configs=(("nope", "1"),)), ErrorCode.INVALID_CONFIG),
            (CreatePartitions(name="orders", count=2), ErrorCode.INVALID_PARTITIONS),
            (DeleteTopic(name="unknown"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (DeleteTopic(topic_id=new_id()), ErrorCode.UNKNOWN_TOPIC_ID),
        )
    ]

    assert all(outcome.version >= created.version for outcome in outcomes)
    await reader.close()


async def only_a_current_and_unfenced_broker_may_propose(keeper: Keeper) -> None:
    reader = await joined(keeper)
    mine = reader.registered
    action = CreateTopic(name="orders")
    unknown = proposal(action, broker_id=mine.broker_id + 1000, broker_epoch=mine.broker_epoch)
    stale = proposal(action, broker_id=mine.broker_id, broker_epoch=mine.broker_epoch - 1)
    own = proposal(action, broker_id=mine.broker_id, broker_epoch=mine.broker_epoch)

    outcomes = await reader.store.propose([unknown, stale, own])

    assert [outcome.error for outcome in outcomes] == [
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.NONE,
    ]
    await reader.close()


async def a_fenced_broker_may_not_propose(keeper: Keeper) -> None:
    store = keeper.attach()
    mine = await store.register(registration())

    (outcome,) = await store.propose(
        [proposal(AllocateProducerIds(), broker_id=mine.broker_id, broker_epoch=mine.broker_epoch)]
    )

    assert outcome.error is ErrorCode.STALE_BROKER_EPOCH


async def proposals_of_many_brokers_are_all_done(keeper: Keeper) -> None:
    readers = [await joined(keeper) for _ in range(3)]

    async def create(reader: Reader, number: int) -> Outcome:
        (outcome,) = await done(reader.store, CreateTopic(name=f"topic-{number}"))
        return outcome

    outcomes: Sequence[Outcome] = await asyncio.gather(
        *(create(readers[number % 3], number) for number in range(12))
    )
    newest = max(outcome.version for outcome in outcomes)
    images = [await reader.reach(lambda image: image.version >= newest) for reader in readers]

    assert all(len(image.topics) == 12 for image in images)
    for reader in readers:
        await reader.close()


PROPOSAL_CASES: tuple[Case, ...] = (
    an_accepted_proposal_arrives_as_a_change,
    the_same_proposal_again_is_answered_and_not_done_again,
    a_proposal_that_is_only_checked_changes_nothing,
    one_call_does_what_it_can,
    a_deleted_topic_is_remembered_and_its_configuration_goes,
    a_topic_of_a_deleted_name_has_another_id,
    configurations_are_whole_values,
    configurations_of_brokers_have_names_of_their_own,
    a_change_that_changes_nothing_is_accepted,
    producer_ids_are_given_once,
    producer_ids_begin_above_what_a_broker_has_seen,
    refusals_have_a_code_a_sentence_and_a_version,
    only_a_current_and_unfenced_broker_may_propose,
    a_fenced_broker_may_not_propose,
    proposals_of_many_brokers_are_all_done,
)
