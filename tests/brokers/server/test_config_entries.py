"""Where a value comes from, beside what DescribeConfigs shows of it."""

from collections.abc import Mapping

import pytest

from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.config_values import ConfigType
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import AlterConfigs, ConfigEdit, ConfigOperation
from brokers.protocol.errors import ErrorCode
from brokers.server.config_entries import (
    AUTO_CREATE_TOPICS,
    DELETE_TOPICS,
    Source,
    broker_entries,
    cluster_entries,
    default_partitions,
    is_enabled,
    topic_entries,
)
from tests.fakes.asking import Desk


def set_on(desk: Desk, broker: str, configs: Mapping[str, str]) -> None:
    edits = tuple(
        ConfigEdit(key=key, operation=ConfigOperation.SET, value=value)
        for key, value in configs.items()
    )
    (outcome,) = desk.twin.propose_now(
        AlterConfigs(
            resource_type=ResourceType.BROKER, name=broker, edits=edits, replaces_all=False
        )
    )
    assert outcome.error is ErrorCode.NONE, outcome.message
    desk.follow()


@pytest.mark.parametrize("key", [AUTO_CREATE_TOPICS, DELETE_TOPICS])
@pytest.mark.parametrize(
    ("given", "enabled"), [(None, True), ("true", True), ("FALSE", False), (" false ", False)]
)
def test_a_switch_is_on_unless_the_broker_was_told_otherwise(
    key: str, given: str | None, *, enabled: bool
) -> None:
    with Desk(defaults={} if given is None else {key: given}) as desk:
        assert is_enabled(desk.context, key) is enabled


def test_every_key_has_its_type_and_its_sentence() -> None:
    with Desk() as desk:
        topic = list(topic_entries(desk.context, {}))
        broker = list(broker_entries(desk.context))

    assert {entry.type for entry in topic} <= set(ConfigType)
    assert all(entry.sentence for entry in (*topic, *broker))
    shown = [key for key, row in broker_configs.ROWS.items() if not row.is_hidden]
    assert [entry.key for entry in broker] == shown


@pytest.mark.parametrize("broker", ["", "1"])
def test_an_unknown_key_is_shown_without_its_value(broker: str) -> None:
    with Desk() as desk:
        set_on(desk, broker, {"their.password": "s3cret"})

        (entry,) = broker_entries(desk.context, ["their.password"])
        wide = list(cluster_entries(desk.context))

    assert (entry.value, entry.type, entry.is_sensitive) == (None, None, True)
    assert entry.source is (Source.THIS_BROKER if broker else Source.ALL_BROKERS)
    assert wide == ([] if broker else [entry])


@pytest.mark.parametrize(
    ("start", "running", "partitions"),
    [
        ({}, {}, -1),
        ({"num.partitions": "3"}, {}, 3),
        ({"num.partitions": "3"}, {"num.partitions": "5"}, -1),
    ],
)
def test_a_broker_names_the_partitions_of_its_start_unless_the_store_knows_others(
    start: dict[str, str], running: dict[str, str], partitions: int
) -> None:
    with Desk(defaults=start) as desk:
        set_on(desk, "", running)

        assert default_partitions(desk.context) == partitions


def test_every_topic_key_has_the_value_that_it_works_with() -> None:
    given = {"retention.ms": "5"}
    with Desk(defaults={"log.roll.hours": "1"}) as desk:
        shown = {entry.key: entry.value for entry in topic_entries(desk.context, given)}

    worked_with = topic_configs.effective(given, {"log.roll.hours": "1"})
    assert shown == {key: worked_with[key] for key in shown}
    assert shown["segment.ms"] == "3600000"


def test_a_key_that_the_topic_sets_is_the_topics_whatever_the_broker_says() -> None:
    with Desk(defaults={"log.retention.ms": "7"}) as desk:
        (entry,) = topic_entries(desk.context, {"retention.ms": "5"}, ["retention.ms"])

    assert (entry.value, entry.source) == ("5", Source.TOPIC)
    assert [told.source for told in entry.told] == [Source.TOPIC, Source.START, Source.DEFAULT]


def test_a_hidden_key_without_a_value_is_not_told_even_by_name() -> None:
    with Desk() as desk:
        assert list(topic_entries(desk.context, {}, ["internal.segment.bytes"])) == []
