"""The part of the contract of metadata stores that is about plans: shown, then done just so."""

from collections.abc import Sequence

from brokers.cluster import levels
from brokers.cluster.effects import EffectKind
from brokers.cluster.image import ResourceType
from brokers.cluster.origins import Origin, from_origin
from brokers.cluster.plans import Plan
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Outcome,
)
from brokers.protocol.errors import ErrorCode
from tests.contracts.keeper import Case, Keeper, Reader, done, joined, registration

ALICE = Origin(actor="User:alice", session="5e55")
RETENTION = AlterConfigs(
    resource_type=ResourceType.TOPIC,
    name="orders",
    edits=(ConfigEdit(key="retention.ms", value="1000"),),
)


async def planner(keeper: Keeper) -> Reader:
    """Return a broker of a cluster in which every member knows plans."""
    return await joined(keeper, registration(metadata_level=levels.KNOWN_LEVEL))


async def applied(reader: Reader, plan: Plan) -> list[Outcome]:
    return await reader.store.propose([from_origin(each, ALICE) for each in plan.proposals])


async def apply_and_see(reader: Reader, plan: Plan) -> None:
    outcomes = await applied(reader, plan)
    assert [outcome.error for outcome in outcomes] == [ErrorCode.NONE] * len(outcomes), outcomes
    newest = max(outcome.version for outcome in outcomes)
    await reader.reach(lambda image: image.version >= newest)


def effects(plan: Plan) -> list[tuple[EffectKind, str]]:
    return [(effect.kind, effect.name) for step in plan.steps for effect in step.effects]


async def a_plan_is_done_as_it_was_shown(keeper: Keeper) -> None:
    reader = await planner(keeper)

    plan = await keeper.preview(
        [
            CreateTopic(name="orders", partitions=3, configs=(("retention.ms", "500"),)),
            CreatePartitions(name="orders", count=5),
            RETENTION,
        ]
    )
    await apply_and_see(reader, plan)

    created, added, altered = (step.effects[0] for step in plan.steps)
    assert effects(plan) == [
        (EffectKind.CREATE_TOPIC, "orders"),
        (EffectKind.ADD_PARTITIONS, "orders"),
        (EffectKind.ALTER_CONFIGS, "orders"),
    ]
    assert (created.before, created.after["partitions"]) == ({}, "3")
    assert (added.before, added.after["partitions"]) == ({"partitions": "3"}, "5")
    assert (altered.before, altered.after) == ({"retention.ms": "500"}, {"retention.ms": "1000"})
    assert reader.image is not None
    states = reader.image.topics["orders"].partitions
    shown = {**created.after, **added.after}
    assert {f"replicas of partition {i}": str(s.leader) for i, s in enumerate(states)} == {
        key: value for key, value in shown.items() if key.startswith("replicas")
    }
    await reader.close()


async def a_preview_changes_nothing(keeper: Keeper) -> None:
    reader = await planner(keeper)
    (before,) = await done(reader.store, CreateTopic(name="orders"))

    plan = await keeper.preview([DeleteTopic(name="orders"), CreateTopic(name="orders")])

    (after,) = await done(reader.store, CreateTopic(name="next"))
    image = await reader.reach(lambda image: image.version >= after.version)
    assert plan.version == before.version
    assert after.version == before.version + 1
    assert {"orders", "next"} <= set(image.topics)
    await reader.close()


async def a_plan_applied_twice_is_done_once(keeper: Keeper) -> None:
    reader = await planner(keeper)
    plan = await keeper.preview([CreateTopic(name="orders")])

    first = await applied(reader, plan)
    again = await applied(reader, plan)

    assert again == first
    await reader.close()


async def a_plan_says_which_of_its_steps_would_be_refused(keeper: Keeper) -> None:
    reader = await planner(keeper)

    plan = await keeper.preview([CreateTopic(name="orders"), CreateTopic(name="orders")])

    first, second = plan.steps
    assert plan.is_refused
    assert plan.proposals == ()
    assert first.error is ErrorCode.NONE
    assert second.error is ErrorCode.TOPIC_ALREADY_EXISTS
    await reader.close()


async def refuses_what_has_moved(
    keeper: Keeper, planned: Action, meanwhile: Sequence[Action], *, named: str
) -> None:
    reader = await planner(keeper)
    await done(reader.store, CreateTopic(name="orders", partitions=2))
    plan = await keeper.preview([planned])
    assert not plan.is_refused, plan.steps
    for action in meanwhile:
        await done(reader.store, action)

    (refused,) = await applied(reader, plan)
    (newest,) = await done(reader.store, CreateTopic(name="after"))
    image = await reader.reach(lambda image: image.version >= newest.version)

    assert refused.error is ErrorCode.INVALID_UPDATE_VERSION
    assert named in refused.message
    assert newest.version == refused.version + 1, image.topics
    await reader.close()


async def a_planned_creation_is_refused_once_the_name_is_taken(keeper: Keeper) -> None:
    await refuses_what_has_moved(
        keeper,
        CreateTopic(name="fresh"),
        [CreateTopic(name="fresh")],
        named="topic fresh exists now",
    )


async def a_planned_config_change_is_refused_once_the_config_has_moved(keeper: Keeper) -> None:
    other = AlterConfigs(
        resource_type=ResourceType.TOPIC,
        name="orders",
        edits=(ConfigEdit(key="segment.ms", value="1000"),),
    )
    await refuses_what_has_moved(
        keeper, RETENTION, [other], named="the configuration of topic orders"
    )


async def a_planned_default_is_refused_once_the_defaults_have_moved(keeper: Keeper) -> None:
    edits = (ConfigEdit(key="num.partitions", value="3"),)
    again = (ConfigEdit(key="num.partitions", operation=ConfigOperation.DELETE),)
    await refuses_what_has_moved(
        keeper,
        AlterConfigs(resource_type=ResourceType.BROKER, name="", edits=edits),
        [
            AlterConfigs(resource_type=ResourceType.BROKER, name="", edits=edits),
            AlterConfigs(resource_type=ResourceType.BROKER, name="", edits=again),
        ],
        named="the default configuration of all brokers",
    )


async def planned_partitions_are_refused_once_the_topic_has_grown(keeper: Keeper) -> None:
    await refuses_what_has_moved(
        keeper,
        CreatePartitions(name="orders", count=5),
        [CreatePartitions(name="orders", count=4)],
        named="topic orders was at version",
    )


async def a_planned_deletion_is_refused_once_the_topic_has_grown(keeper: Keeper) -> None:
    await refuses_what_has_moved(
        keeper,
        DeleteTopic(name="orders"),
        [CreatePartitions(name="orders", count=4)],
        named="topic orders was at version",
    )


async def a_planned_deletion_is_refused_once_its_configuration_has_moved(keeper: Keeper) -> None:
    await refuses_what_has_moved(
        keeper, DeleteTopic(name="orders"), [RETENTION], named="the configuration of topic orders"
    )


async def a_planned_deletion_spares_a_new_topic_of_the_same_name(keeper: Keeper) -> None:
    await refuses_what_has_moved(
        keeper,
        DeleteTopic(name="orders"),
        [DeleteTopic(name="orders"), CreateTopic(name="orders", partitions=2)],
        named="topic orders was at version",
    )


async def a_planned_placement_is_refused_once_its_broker_was_fenced(keeper: Keeper) -> None:
    reader = await planner(keeper)
    other = await planner(keeper)
    await other.reach(lambda image: len(image.brokers) == 2)
    plan = await keeper.preview([CreateTopic(name="orders", partitions=2)])
    gone = reader.registered.broker_id
    await reader.close()

    await keeper.end(reader.store)
    await other.reach(lambda image: image.brokers[gone].is_fenced)
    (refused,) = await applied(other, plan)

    assert refused.error is ErrorCode.INVALID_UPDATE_VERSION
    assert f"broker {gone} was at version" in refused.message
    await other.close()


PLAN_CASES: tuple[Case, ...] = (
    a_plan_is_done_as_it_was_shown,
    a_preview_changes_nothing,
    a_plan_applied_twice_is_done_once,
    a_plan_says_which_of_its_steps_would_be_refused,
    a_planned_creation_is_refused_once_the_name_is_taken,
    a_planned_config_change_is_refused_once_the_config_has_moved,
    a_planned_default_is_refused_once_the_defaults_have_moved,
    planned_partitions_are_refused_once_the_topic_has_grown,
    a_planned_deletion_is_refused_once_the_topic_has_grown,
    a_planned_deletion_is_refused_once_its_configuration_has_moved,
    a_planned_deletion_spares_a_new_topic_of_the_same_name,
    a_planned_placement_is_refused_once_its_broker_was_fenced,
)
