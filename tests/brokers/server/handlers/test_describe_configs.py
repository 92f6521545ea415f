"""DescribeConfigs: every key with its value, its source, and who else has a say."""

from collections.abc import Iterator

import pytest

from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import AlterConfigs, ConfigEdit
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from brokers.server.handlers import describe_configs
from tests.fakes.asking import LOG_DIR, Desk

VERSIONS = range(1, 5)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk(defaults={"log.retention.ms": "5000", "log.segment.bytes": "2000000"}) as opened:
        opened.twin.create_topic("orders", configs={"retention.ms": "1000"})
        opened.twin.create_topic("plain")
        opened.follow()
        yield opened


def set_for_broker(desk: Desk, name: str, key: str, value: str) -> None:
    action = AlterConfigs(
        resource_type=ResourceType.BROKER, name=name, edits=(ConfigEdit(key=key, value=value),)
    )
    (outcome,) = desk.twin.propose_now(action)
    assert outcome.error == ErrorCode.NONE, outcome.message
    desk.follow()


def ask(
    desk: Desk,
    version: int,
    *resources: tuple[int, str],
    keys: list[str] | None = None,
    is_verbose: bool = False,
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name in resources
        ],
        include_synonyms=is_verbose,
        include_documentation=is_verbose and version >= 3,
    )
    results = desk.ask(describe_configs, version, request).results
    assert isinstance(results, list)
    return results


def one(
    desk: Desk, kind: int, name: str, key: str, version: int = 4
) -> DescribeConfigsResourceResult:
    (result,) = ask(desk, version, (kind, name), keys=[key], is_verbose=True)
    assert result.error_code == ErrorCode.NONE, result.error_message
    (config,) = result.configs
    assert config.name == key
    return config


def synonyms(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in config.synonyms]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_keys_of_a_topic_are_those_of_kafka(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, (TOPIC, "plain"))

    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    assert (result.resource_type, result.resource_name) == (TOPIC, "plain")
    assert [config.name for config in result.configs] == list(topic_configs.PUBLIC_KEYS)
    assert len(result.configs) == 33


@pytest.mark.parametrize("version", VERSIONS)
def test_no_keys_at_all_are_all_keys_too(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, (TOPIC, "plain"), keys=[])

    assert len(result.configs) == 33


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_that_there_are_not_are_left_out(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, (TOPIC, "plain"), keys=["no.such.key", "flush.ms"])

    assert [config.name for config in result.configs] == ["flush.ms"]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_topic_sets_comes_before_everything_else(desk: Desk, version: int) -> None:
    config = one(desk, TOPIC, "orders", "retention.ms", version)

    assert (config.value, config.config_source) == ("1000", 1)
    assert (config.read_only, config.is_sensitive) == (False, False)
    assert synonyms(config) == [
        ("retention.ms", "1000", 1),
        ("log.retention.ms", "5000", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert config.config_type == (5 if version >= 3 else 0)
    assert bool(config.documentation) == (version >= 3)


def test_what_the_broker_was_started_with_comes_before_defaults(desk: Desk) -> None:
    config = one(desk, TOPIC, "plain", "segment.bytes")

    assert (config.value, config.config_source) == ("2000000", 4)
    assert synonyms(config) == [
        ("log.segment.bytes", "2000000", 4),
        ("log.segment.bytes", "1073741824", 5),
    ]


def test_what_is_set_for_all_brokers_and_for_this_one_comes_before_its_start(desk: Desk) -> None:
    set_for_broker(desk, "", "log.segment.bytes", "3000000")
    for_all = one(desk, TOPIC, "plain", "segment.bytes")
    set_for_broker(desk, "1", "log.segment.bytes", "4000000")
    for_one = one(desk, TOPIC, "plain", "segment.bytes")

    assert (for_all.value, for_all.config_source) == ("3000000", 3)
    assert (for_one.value, for_one.config_source) == ("4000000", 2)
    assert [source for _, _, source in synonyms(for_one)] == [2, 3, 4, 5]


def test_a_key_at_its_default_says_so(desk: Desk) -> None:
    config = one(desk, TOPIC, "plain", "cleanup.policy")

    assert (config.value, config.config_source, config.config_type) == ("delete", 5, 7)
    assert synonyms(config) == [("log.cleanup.policy", "delete", 5)]


def test_other_spellings_are_told_only_behind_the_own_one() -> None:
    with Desk() as desk:
        desk.twin.create_topic("plain")
        desk.follow()
        config = one(desk, TOPIC, "plain", "retention.ms")

    assert (config.value, config.config_source) == ("604800000", 5)
    assert synonyms(config) == []


def test_our_own_key_is_shown_when_it_is_asked_for_or_set(desk: Desk) -> None:
    desk.twin.create_topic("quick", configs={"samsa.durability": "replicated"})
    desk.follow()

    asked = one(desk, TOPIC, "plain", "samsa.durability")
    (whole,) = ask(desk, 4, (TOPIC, "quick"))

    assert (asked.value, asked.config_source) == ("auto", 5)
    shown = {config.name: config.value for config in whole.configs}
    assert shown["samsa.durability"] == "replicated"
    assert len(shown) == 34


@pytest.mark.parametrize("version", VERSIONS)
def test_all_keys_of_this_broker_are_told(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, (BROKER, "1"))

    told = {config.name: config for config in result.configs}
    assert list(told) == [key for key, row in broker_configs.ROWS.items() if not row.is_hidden]
    assert told["node.id"].value == told["broker.id"].value == "1"
    assert told["log.dirs"].value == LOG_DIR
    assert told["advertised.listeners"].value == "PLAINTEXT://broker-1.test:9091"
    assert told["listeners"].value == "PLAINTEXT://127.0.0.1:9091"
    assert told["broker.rack"].value is None
    assert (told["node.id"].config_source, told["node.id"].read_only) == (4, True)
    assert (told["log.segment.bytes"].value, told["log.segment.bytes"].read_only) == (
        "2000000",
        False,
    )
    assert (told["max.connections"].value, told["max.connections"].config_source) == (
        "2147483647",
        5,
    )


def test_a_key_of_this_broker_knows_its_other_spellings(desk: Desk) -> None:
    config = one(desk, BROKER, "1", "log.retention.ms")

    assert synonyms(config) == [("log.retention.ms", "5000", 4), ("log.retention.hours", "168", 5)]


def test_the_empty_broker_shows_what_is_set_for_all(desk: Desk) -> None:
    assert ask(desk, 4, (BROKER, ""))[0].configs == []

    set_for_broker(desk, "", "log.segment.bytes", "3000000")
    config = one(desk, BROKER, "", "log.segment.bytes")

    assert (config.value, config.config_source, config.read_only) == ("3000000", 3, False)
    assert synonyms(config) == [("log.segment.bytes", "3000000", 3)]


def test_synonyms_and_documentation_come_on_request(desk: Desk) -> None:
    (result,) = ask(desk, 4, (TOPIC, "orders"))

    assert all(config.synonyms == [] for config in result.configs)
    assert all(config.documentation is None for config in result.configs)


def test_no_key_tells_a_secret(desk: Desk) -> None:
    results = ask(desk, 4, (TOPIC, "orders"), (BROKER, "1"))

    assert not any(config.is_sensitive for result in results for config in result.configs)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_that_cannot_be_told_says_why(
    desk: Desk, version: int, kind: int, name: str, error: ErrorCode
) -> None:
    (result,) = ask(desk, version, (kind, name))

    assert (result.error_code, result.configs) == (error, [])
    assert result.error_message
    assert (result.resource_type, result.resource_name) == (kind, name)


@pytest.mark.parametrize(("kind", "name"), [(LOGGER, "1"), (METRICS, "all"), (GROUP, "g")])
def test_resources_without_keys_in_this_release_are_empty(desk: Desk, kind: int, name: str) -> None:
    (result,) = ask(desk, 4, (kind, name))

    assert (result.error_code, result.configs) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_type_that_is_none_fails_the_whole_request(desk: Desk, version: int) -> None:
    results = ask(desk, version, (TOPIC, "orders"), (99, "x"))

    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_resources_are_told_one_by_one_and_in_order(desk: Desk) -> None:
    results = ask(desk, 4, (TOPIC, "plain"), (TOPIC, "nobody"), (BROKER, "1"))

    assert [(result.resource_name, result.error_code) for result in results] == [
        ("plain", ErrorCode.NONE),
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("1", ErrorCode.NONE),
    ]
