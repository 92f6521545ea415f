"""The sentences at the head of plans."""

import pytest

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from console.queries.plan_words import sentence_of
from tests.brokers.cluster.test_plans import new_twin, plan

SET, UNSET = ConfigOperation.SET, ConfigOperation.DELETE


def altered(kind: ResourceType, name: str, *edits: tuple[str, str | None]) -> AlterConfigs:
    return AlterConfigs(
        resource_type=kind,
        name=name,
        edits=tuple(
            ConfigEdit(key=key, operation=UNSET if value is None else SET, value=value)
            for key, value in edits
        ),
    )


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (
            CreateTopic(name="new", partitions=3, configs=(("segment.ms", "1000"),)),
            "Create topic new with 3 partitions, on one broker each; set segment.ms to 1000 (1 s).",
        ),
        (
            CreateTopic(name="one", partitions=1),
            "Create topic one with 1 partition, on one broker.",
        ),
        (
            CreatePartitions(name="orders", count=8),
            "Add 2 partitions to topic orders, which then has 8.",
        ),
        (DeleteTopic(name="orders"), "Delete topic orders, with all of its records."),
        (DeleteTopic(name="gone"), "Delete topic gone, with all of its records."),
        (
            altered(
                ResourceType.TOPIC, "orders", ("cleanup.policy", "compact"), ("retention.ms", None)
            ),
            "Set cleanup.policy to compact and unset retention.ms, for topic orders.",
        ),
        (
            altered(ResourceType.BROKER, "", ("log.retention.ms", "1000")),
            "Set log.retention.ms to 1000 (1 s), for all brokers.",
        ),
        (
            altered(ResourceType.BROKER, "", ("some.plugin.password", "secret")),
            "Set some.plugin.password to (hidden), for all brokers.",
        ),
    ],
    ids=["create", "create-one", "grow", "delete", "refused", "configs", "brokers", "unknown"],
)
def test_a_plan_speaks_of_topics_and_never_of_calls(action: Action, sentence: str) -> None:
    (step,) = plan(new_twin(), action).steps

    assert sentence_of(step) == sentence
    assert all("topic id" not in effect.after for effect in step.effects)
