"""Plans without a store: what follows from a change, and the commands that would make it."""

from collections import Counter

import pytest

from brokers.cluster import levels
from brokers.cluster.image import ResourceType
from brokers.cluster.implications import LONE_COPY, moved_share
from brokers.cluster.plans import MAX_STEPS, Plan, Step
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.cluster.store import Registration
from brokers.protocol.errors import KafkaError
from tests.fakes.twin import Twin


def new_twin(**configs: str) -> Twin:
    """Return a twin with two brokers and the topic orders."""
    twin = Twin()
    for number in range(2):
        registration = Registration(
            incarnation=bytes([number]) * 16,
            host="broker.test",
            port=9092 + number,
            metadata_level=levels.KNOWN_LEVEL,
        )
        registered = twin.begin_session(registration)
        twin.set_fenced(registered.broker_id, is_fenced=False)
    twin.create_topic("orders", partitions=6, configs=configs)
    return twin


def plan(twin: Twin, *actions: Action) -> Plan:
    return twin.preview(actions)


def step(action: Action, **configs: str) -> Step:
    (only,) = plan(new_twin(**configs), action).steps
    assert not only.error, only.message
    return only


def topic_configs(*edits: ConfigEdit) -> AlterConfigs:
    return AlterConfigs(resource_type=ResourceType.TOPIC, name="orders", edits=edits)


def told(action: Action, **configs: str) -> str:
    return "\n".join(step(action, **configs).implications)


def underscored(**configs: str) -> dict[str, str]:
    """Return keys with dots, which keywords cannot have."""
    return {key.replace("_", "."): value for key, value in configs.items()}


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (3, 5), (6, 8), (6, 12), (12, 18)])
def test_the_share_of_keys_that_move_is_what_hashes_do(before: int, after: int) -> None:
    hashes = range(before * after * 10)

    moved = Counter(number % before != number % after for number in hashes)

    assert moved_share(before, after) == pytest.approx(moved[True] / len(hashes))


def test_plan_of_new_partitions_states_how_many_keys_move() -> None:
    words = told(CreatePartitions(name="orders", count=8))

    assert "About 75% of the keys go to another partition" in words
    assert "n = 6 and m = 8" in words
    assert "compacted" not in words


def test_plan_for_a_compacted_topic_warns_of_records_left_behind() -> None:
    words = told(CreatePartitions(name="orders", count=12), **underscored(cleanup_policy="compact"))

    assert "About 50% of the keys" in words
    assert "the last record of a key that moves stays in its former partition" in words


def test_plan_of_a_deletion_lists_the_losses() -> None:
    words = told(DeleteTopic(name="orders"), **underscored(retention_ms="1000"))

    assert "All records of 6 partitions are deleted" in words
    assert "Offsets that groups have committed" in words
    assert "Its configs are lost: retention.ms" in words


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ({"retention.ms": "60000"}, "older than 1 min (60000 ms) are deleted within minutes"),
        ({"retention.bytes": "2000000"}, "above 2 MB (2000000 bytes) are deleted"),
        ({"retention.ms": "1000"}, "segment.ms is 7 d (604800000 ms) and retention.ms is 1 s"),
        ({"min.insync.replicas": "2"}, "each partition has 1 replica: producers that ask for"),
        ({"cleanup.policy": "compact"}, "producers that send records without a key are refused"),
        ({"cleanup.policy": "compact"}, "no longer deleted by age or size"),
        ({"max.message.bytes": "1000"}, "batches above 1 kB (1000 bytes) are refused"),
        ({"message.timestamp.type": "LogAppendTime"}, "carry the broker's time"),
        (
            {"samsa.durability": "replicated"},
            "one replica: an acknowledged record is in",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_plan_of_a_config_lists_its_consequences(edits: dict[str, str], sentence: str) -> None:
    action = topic_configs(*(ConfigEdit(key=k, value=v) for k, v in edits.items()))

    assert sentence in told(action)


def test_plan_of_a_creation_warns_of_its_only_copy() -> None:
    def creation(durability: str) -> str:
        configs = (("samsa.durability", durability),)
        return told(CreateTopic(name="lone", replication_factor=1, configs=configs))

    assert LONE_COPY in creation("replicated")
    assert LONE_COPY not in creation("synced")


def test_a_longer_retention_loses_nothing_and_says_nothing() -> None:
    assert not told(topic_configs(ConfigEdit(key="retention.ms", value="-1")))


def test_plan_of_a_cluster_default_states_which_topics_it_affects() -> None:
    edits = (ConfigEdit(key="num.partitions", value="4"),)

    words = told(AlterConfigs(resource_type=ResourceType.BROKER, name="", edits=edits))

    assert "every topic that does not set the key itself" in words


def test_a_plan_that_changes_nothing_says_so() -> None:
    twin = new_twin(**underscored(retention_ms="1000"))

    made = plan(twin, topic_configs(ConfigEdit(key="retention.ms", value="1000")))

    assert made.changes_nothing


def test_a_plan_has_a_bounded_number_of_steps() -> None:
    actions = [DeleteTopic(name="orders")] * (MAX_STEPS + 1)

    with pytest.raises(KafkaError, match=f"{MAX_STEPS + 1} changes in one plan"):
        plan(new_twin(), *actions)


def test_plan_needs_a_metadata_level_with_versions() -> None:
    twin = Twin()
    twin.begin_session(Registration(incarnation=bytes(16), host="h", port=1, metadata_level=1))

    with pytest.raises(levels.LevelTooLow, match="a plan needs metadata level 2"):
        plan(twin, DeleteTopic(name="orders"))
