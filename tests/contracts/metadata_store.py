"""What every keeper of metadata promises a broker: the contract of `brokers.cluster.store`.

A keeper's test gives `check` a function that opens one, and runs it for each of CASES:

    @pytest.mark.parametrize("case", CASES, ids=case_name)
    def test_the_twin_keeps_the_contract(case: Case) -> None:
        check(case, opened_twin)

Cases wait for facts, never for time: whatever is asked of a keeper may be seen a little later.
"""

from contextlib import aclosing

import pytest

from brokers.cluster import levels
from brokers.cluster.apply import apply
from brokers.cluster.changes import Change
from brokers.cluster.image import Broker, ClusterImage, Position, ResourceType
from brokers.cluster.proposals import (
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.cluster.store import (
    MetadataRegressed,
)
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.contracts.keeper import (
    Case,
    Keeper,
    case_name,
    check,
    done,
    joined,
    new_id,
    refused,
    registration,
)
from tests.contracts.metadata_plans import PLAN_CASES
from tests.contracts.metadata_proposals import PROPOSAL_CASES

__all__ = ["CASES", "Case", "case_name", "check"]

# Registration.


async def a_new_broker_gets_an_id_and_an_epoch(keeper: Keeper) -> None:
    store = keeper.attach()

    registered = await store.register(registration())

    assert registered.broker_id >= 0
    assert registered.broker_epoch >= 0
    assert registered.cluster_id == keeper.cluster_id
    assert registered.version >= 1


async def brokers_without_ids_get_different_ones(keeper: Keeper) -> None:
    first = await keeper.attach().register(registration())
    second = await keeper.attach().register(registration())

    assert first.broker_id != second.broker_id
    assert second.broker_epoch > first.broker_epoch


async def a_new_broker_gets_the_id_it_wants_unless_somebody_has_it(keeper: Keeper) -> None:
    third = await keeper.attach().register(registration(wanted_id=3))
    first = await keeper.attach().register(registration(wanted_id=1))
    other = await keeper.attach().register(registration(wanted_id=3))

    assert [third.broker_id, first.broker_id, other.broker_id] == [3, 1, 4]


async def the_same_incarnation_again_keeps_id_and_epoch(keeper: Keeper) -> None:
    asked = registration()
    first = await keeper.attach().register(asked)

    again = await keeper.attach().register(asked)

    assert (again.broker_id, again.broker_epoch) == (first.broker_id, first.broker_epoch)


async def another_incarnation_is_refused_while_the_first_lives(keeper: Keeper) -> None:
    reader = await joined(keeper)

    with pytest.raises(KafkaError) as refusal:
        await keeper.attach().register(registration(reader.registered.broker_id))

    assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await reader.close()


async def another_incarnation_takes_over_from_a_dead_one(keeper: Keeper) -> None:
    first = await joined(keeper)
    await first.close()
    await keeper.end(first.store)

    second = await joined(keeper, registration(first.registered.broker_id, port=9192))

    assert second.registered.broker_id == first.registered.broker_id
    assert second.registered.broker_epoch > first.registered.broker_epoch
    assert second.image is not None
    assert second.image.brokers[second.registered.broker_id].port == 9192
    await second.close()


async def a_broker_of_another_cluster_is_refused(keeper: Keeper) -> None:
    with pytest.raises(KafkaError) as refusal:
        await keeper.attach().register(registration(cluster_id="some-other-cluster0000"))

    assert refusal.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


async def an_action_above_the_metadata_level_is_refused_until_every_broker_knows_it(
    keeper: Keeper,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "KNOWN_LEVEL", 2)
        patch.setitem(levels.ACTION_LEVELS, CreateTopic, 2)
        older = await joined(keeper)
        newer = await joined(keeper, registration(metadata_level=2))

        outcome = await refused(newer.store, CreateTopic(name="new"), ErrorCode.UNSUPPORTED_VERSION)
        await older.close()
        await keeper.end(older.store)
        updated = await joined(keeper, registration(older.registered.broker_id, metadata_level=2))
        await done(updated.store, CreateTopic(name="new"))

        assert "CreateTopic needs metadata level 2 and the cluster is at 1" in outcome.message
        with pytest.raises(KafkaError, match="knows metadata level 1"):
            await keeper.attach().register(registration())
        await newer.close()
        await updated.close()


async def a_broker_is_fenced_until_it_has_applied_its_registration(keeper: Keeper) -> None:
    store = keeper.attach()
    asked = registration(rack="b", inspection_port=9093, boot_id="boot-1")
    registered = await store.register(asked)

    async with aclosing(store.follow(Position())) as updates:  # type: ignore[type-var]
        image = await anext(updates)
        while not (isinstance(image, ClusterImage) and image.version >= registered.version):
            update = await anext(updates)
            image = apply(image, update) if isinstance(update, Change) else update  # type: ignore[arg-type]

    broker = image.brokers[registered.broker_id]
    assert broker.is_fenced
    assert broker == Broker(
        id=registered.broker_id,
        epoch=registered.broker_epoch,
        host=asked.host,
        port=asked.port,
        rack="b",
        inspection_port=9093,
        boot_id="boot-1",
        agent_id=broker.agent_id,
    )


async def a_broker_that_has_applied_its_registration_is_let_in(keeper: Keeper) -> None:
    reader = await joined(keeper)

    assert reader.image is not None
    assert reader.image.controller_id == reader.registered.broker_id
    await reader.close()


async def a_dead_broker_is_fenced(keeper: Keeper) -> None:
    dying, other = await joined(keeper), await joined(keeper)

    await dying.close()
    await keeper.end(dying.store)
    image = await other.reach(lambda image: image.brokers[dying.registered.broker_id].is_fenced)

    assert not image.brokers[other.registered.broker_id].is_fenced
    await other.close()


# The feed.


async def the_feed_begins_with_a_whole_image(keeper: Keeper) -> None:
    reader = await joined(keeper)

    assert isinstance(reader.seen[0], ClusterImage)
    assert reader.seen[0].cluster_id == keeper.cluster_id
    await reader.close()


async def changes_come_in_order_and_without_gaps(keeper: Keeper) -> None:
    reader = await joined(keeper)
    before = len(reader.seen)

    for number in range(20):
        await done(reader.store, CreateTopic(name=f"topic-{number}"))
    await reader.reach(lambda image: "topic-19" in image.topics)

    changes = reader.seen[before:]
    assert all(isinstance(update, Change) for update in changes)
    versions = [update.position.version for update in changes]
    assert versions == list(range(versions[0], versions[0] + len(versions)))
    assert len({update.position.id for update in changes}) == len(changes)
    await reader.close()


async def all_brokers_reach_the_same_image(keeper: Keeper) -> None:
    first, second = await joined(keeper), await joined(keeper)

    await done(first.store, CreateTopic(name="orders", partitions=3))
    await done(second.store, CreatePartitions(name="orders", count=5))
    outcomes = await done(
        first.store,
        AlterConfigs(
            resource_type=ResourceType.TOPIC,
            name="orders",
            edits=(ConfigEdit(key="retention.ms", value="5"),),
        ),
    )
    one = await first.reach(lambda image: image.version >= outcomes[0].version)
    other = await second.reach(lambda image: image.version >= one.version)

    assert one == other
    await first.close()
    await second.close()


async def a_new_reader_sees_what_the_changes_led_to(keeper: Keeper) -> None:
    reader = await joined(keeper)
    await done(
        reader.store,
        CreateTopic(name="kept", partitions=3, configs=(("cleanup.policy", "compact"),)),
        CreateTopic(name="dropped"),
    )
    outcomes = await done(reader.store, DeleteTopic(name="dropped"))
    image = await reader.reach(lambda image: image.version >= outcomes[0].version)

    await reader.close()
    late = await joined(keeper)
    whole = await late.reach(lambda late_image: late_image.version >= image.version)

    assert whole.topics == image.topics
    assert whole.names == image.names
    assert whole.configs == image.configs
    assert whole.deleted == image.deleted
    await late.close()


async def a_reader_goes_on_where_it_stopped(keeper: Keeper) -> None:
    reader, other = await joined(keeper), await joined(keeper)
    await other.close()
    before = len(other.seen)

    await done(reader.store, CreateTopic(name="meanwhile"))
    await other.reach(lambda image: "meanwhile" in image.topics)

    assert all(isinstance(update, Change) for update in other.seen[before:])
    await reader.close()
    await other.close()


async def a_reader_that_was_away_too_long_begins_anew(keeper: Keeper) -> None:
    reader = await joined(keeper)
    assert reader.image is not None
    old = reader.image.position

    await done(reader.store, CreateTopic(name="meanwhile"))
    await keeper.forget()
    late = keeper.attach()
    await late.register(registration())
    update = await anext(late.follow(old))

    assert isinstance(update, ClusterImage)
    assert "meanwhile" in update.topics
    await reader.close()


async def a_position_that_never_was_is_refused(keeper: Keeper) -> None:
    reader = await joined(keeper)
    assert reader.image is not None
    version = reader.image.version
    await reader.close()

    for unknown in (Position(version, new_id()), Position(version + 1000, new_id())):
        store = keeper.attach()
        await store.register(registration())
        with pytest.raises(MetadataRegressed, match="METADATA_REGRESSED"):
            await anext(store.follow(unknown))


async def a_broker_with_a_position_that_never_was_is_not_registered(keeper: Keeper) -> None:
    reader = await joined(keeper)
    assert reader.image is not None
    position = reader.image.position

    for unknown in (Position(position.version, new_id()), Position(position.version + 9, new_id())):
        asked = registration(applied_version=unknown.version, applied_id=unknown.id)
        with pytest.raises(MetadataRegressed, match="METADATA_REGRESSED"):
            await keeper.attach().register(asked)
    asked = registration(applied_version=position.version, applied_id=position.id)
    another = await joined(keeper, asked)

    assert another.image is not None
    assert len(another.image.brokers) == 2


CASES: tuple[Case, ...] = (
    a_new_broker_gets_an_id_and_an_epoch,
    brokers_without_ids_get_different_ones,
    a_new_broker_gets_the_id_it_wants_unless_somebody_has_it,
    the_same_incarnation_again_keeps_id_and_epoch,
    another_incarnation_is_refused_while_the_first_lives,
    another_incarnation_takes_over_from_a_dead_one,
    a_broker_of_another_cluster_is_refused,
    an_action_above_the_metadata_level_is_refused_until_every_broker_knows_it,
    a_broker_is_fenced_until_it_has_applied_its_registration,
    a_broker_that_has_applied_its_registration_is_let_in,
    a_dead_broker_is_fenced,
    the_feed_begins_with_a_whole_image,
    changes_come_in_order_and_without_gaps,
    all_brokers_reach_the_same_image,
    a_new_reader_sees_what_the_changes_led_to,
    a_reader_goes_on_where_it_stopped,
    a_reader_that_was_away_too_long_begins_anew,
    a_position_that_never_was_is_refused,
    a_broker_with_a_position_that_never_was_is_not_registered,
    *PROPOSAL_CASES,
    *PLAN_CASES,
)
