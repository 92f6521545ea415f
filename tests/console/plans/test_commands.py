"""Commands that make the change of a plan: of `./samsa`, and of Kafka's own scripts."""

import pytest

from brokers.cluster.proposals import (
    Action,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.protocol.errors import ErrorCode
from console.plans.commands import of_step
from tests.brokers.cluster.test_plans import new_twin, plan, step, topic_configs, underscored

BOOTSTRAP = "broker.test:9092"


def test_commands_of_a_new_topic_name_the_chosen_brokers() -> None:
    created = step(
        CreateTopic(name="new", partitions=2, configs=(("cleanup.policy", "compact,delete"),))
    )
    assert isinstance(created.call, CreateTopic)
    chosen = ",".join(str(broker) for (broker,) in created.call.assignments or ())

    assert of_step(created, bootstrap=BOOTSTRAP) == (
        (
            "./samsa topics create new --partitions 2 --replication-factor 1"
            " --config cleanup.policy=compact,delete"
        ),
        (
            f"kafka-topics.sh --bootstrap-server {BOOTSTRAP} --create --topic new"
            f" --replica-assignment {chosen} --config cleanup.policy=compact,delete"
        ),
    )


@pytest.mark.parametrize(
    ("action", "ours", "kafkas"),
    [
        (
            CreatePartitions(name="orders", count=8),
            "./samsa topics alter orders --partitions 8",
            (
                "kafka-topics.sh --bootstrap-server broker.test:9092 --alter --topic orders"
                " --partitions 8"
            ),
        ),
        (
            DeleteTopic(name="orders"),
            "./samsa topics delete orders",
            "kafka-topics.sh --bootstrap-server broker.test:9092 --delete --topic orders",
        ),
        (
            topic_configs(
                ConfigEdit(key="cleanup.policy", operation=ConfigOperation.APPEND, value="compact"),
                ConfigEdit(key="retention.ms", operation=ConfigOperation.DELETE),
            ),
            (
                "./samsa configs alter topic orders --set cleanup.policy=delete,compact"
                " --delete retention.ms"
            ),
            (
                "kafka-configs.sh --bootstrap-server broker.test:9092 --alter --entity-type topics"
                " --entity-name orders --add-config 'cleanup.policy=[delete,compact]'"
                " --delete-config retention.ms"
            ),
        ),
    ],
    ids=["partitions", "delete", "configs"],
)
def test_commands_make_the_change_of_a_step(action: Action, ours: str, kafkas: str) -> None:
    planned = step(action, **underscored(retention_ms="1000"))

    assert of_step(planned, bootstrap=BOOTSTRAP) == (ours, kafkas)


def test_name_with_shell_characters_is_quoted() -> None:
    (refused,) = plan(new_twin(), CreatePartitions(name="a; rm -rf /", count=2)).steps

    assert refused.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ours, _ = of_step(refused, bootstrap=BOOTSTRAP)
    assert ours == "./samsa topics alter 'a; rm -rf /' --partitions 2"


def test_name_that_looks_like_an_option_follows_the_options() -> None:
    made = step(CreateTopic(name="--yes", partitions=1))

    ours, kafkas = of_step(made, bootstrap=BOOTSTRAP)

    assert ours == "./samsa topics create --partitions 1 --replication-factor 1 -- --yes"
    assert " --topic=--yes " in kafkas


def test_step_without_effects_has_no_command() -> None:
    twin = new_twin(**underscored(retention_ms="1000"))

    made = plan(twin, topic_configs(ConfigEdit(key="retention.ms", value="1000")))

    assert of_step(made.steps[0], bootstrap=BOOTSTRAP) == ()
