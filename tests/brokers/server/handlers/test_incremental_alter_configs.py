"""IncrementalAlterConfigs: single keys, all of a resource or none."""

from collections.abc import Iterator, Mapping

import pytest

from brokers.cluster.image import ResourceType
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from brokers.server.handlers import incremental_alter_configs
from tests.fakes.asking import Desk

VERSIONS = range(2)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        opened.twin.create_topic("orders", configs={"retention.ms": "1000"})
        opened.twin.create_topic("payments")
        opened.follow()
        yield opened


def edit(
    *edits: tuple[str, int, str | None], kind: int = TOPIC, name: str = "orders"
) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in edits
        ],
    )


def ask(
    desk: Desk, version: int, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = desk.ask(incremental_alter_configs, version, request).responses
    assert isinstance(responses, list)
    return responses


def configs(desk: Desk, name: str = "orders") -> Mapping[str, str]:
    return desk.twin.image.configs_of(ResourceType.TOPIC, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_is_set_and_the_others_stay(desk: Desk, version: int) -> None:
    (response,) = ask(desk, version, edit(("segment.ms", SET, "7000")))

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.resource_type, response.resource_name) == (TOPIC, "orders")
    assert configs(desk) == {"retention.ms": "1000", "segment.ms": "7000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_is_deleted(desk: Desk, version: int) -> None:
    (response,) = ask(desk, version, edit(("retention.ms", DELETE, None)))

    assert response.error_code == ErrorCode.NONE
    assert configs(desk) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_items_are_appended_and_taken_away(desk: Desk, version: int) -> None:
    ask(desk, version, edit(("cleanup.policy", APPEND, "compact")))
    appended = configs(desk)["cleanup.policy"]
    ask(desk, version, edit(("cleanup.policy", SUBTRACT, "delete")))

    assert appended == "delete,compact"
    assert configs(desk)["cleanup.policy"] == "compact"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_trial_changes_nothing(desk: Desk, version: int) -> None:
    (response,) = ask(desk, version, edit(("segment.ms", SET, "7000")), validate_only=True)

    assert response.error_code == ErrorCode.NONE
    assert configs(desk) == {"retention.ms": "1000"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (edit(("no.such.key", SET, "1")), ErrorCode.INVALID_CONFIG),
        (edit(("segment.ms", SET, "soon")), ErrorCode.INVALID_CONFIG),
        (edit(("segment.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (edit(("segment.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (edit(("segment.ms", 4, "1")), ErrorCode.INVALID_REQUEST),
        (edit(("segment.ms", -1, "1")), ErrorCode.INVALID_REQUEST),
        (edit(("segment.ms", SET, "1"), ("segment.ms", SET, "2")), ErrorCode.INVALID_REQUEST),
        (edit(("segment.ms", SET, "1"), name="nobody"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (edit(("segment.ms", SET, "1"), kind=99), ErrorCode.INVALID_REQUEST),
        (edit(("log.segment.bytes", SET, "1"), kind=BROKER, name="1"), ErrorCode.INVALID_REQUEST),
        (edit(("node.id", SET, "7"), kind=BROKER, name="1"), ErrorCode.INVALID_REQUEST),
        (
            edit(("log.segment.bytes", SET, "2000000"), kind=BROKER, name="2"),
            ErrorCode.INVALID_REQUEST,
        ),
        (edit(("x", SET, "1"), kind=BROKER, name="one"), ErrorCode.INVALID_REQUEST),
        (edit(("root", SET, "DEBUG"), kind=LOGGER, name="1"), ErrorCode.INVALID_CONFIG),
        (edit(("root", SET, "DEBUG"), kind=LOGGER, name="2"), ErrorCode.INVALID_REQUEST),
        (edit(("metrics", SET, "x"), kind=METRICS, name="m"), ErrorCode.INVALID_REQUEST),
        (edit(("x", SET, "1"), kind=GROUP, name="g"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_done_is_told_with_a_reason(
    desk: Desk, version: int, resource: AlterConfigsResource, error: ErrorCode
) -> None:
    (response,) = ask(desk, version, resource)

    assert response.error_code == error
    assert response.error_message
    assert (response.resource_type, response.resource_name) == (
        resource.resource_type,
        resource.resource_name,
    )
    assert configs(desk) == {"retention.ms": "1000"}


def test_one_bad_key_refuses_all_keys_of_its_resource_and_no_other(desk: Desk) -> None:
    responses = ask(
        desk,
        1,
        edit(("segment.ms", SET, "7000"), ("no.such.key", SET, "1")),
        edit(("segment.ms", SET, "8000"), name="payments"),
    )

    assert [response.error_code for response in responses] == [
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
    ]
    assert configs(desk) == {"retention.ms": "1000"}
    assert configs(desk, "payments") == {"segment.ms": "8000"}


def test_a_resource_named_twice_is_left_alone_and_answered_twice(desk: Desk) -> None:
    responses = ask(
        desk,
        1,
        edit(("segment.ms", SET, "7000")),
        edit(("segment.ms", SET, "8000"), name="payments"),
        edit(("segment.ms", SET, "9000")),
    )

    assert [(response.resource_name, response.error_code) for response in responses] == [
        ("orders", ErrorCode.INVALID_REQUEST),
        ("payments", ErrorCode.NONE),
        ("orders", ErrorCode.INVALID_REQUEST),
    ]
    assert configs(desk) == {"retention.ms": "1000"}


@pytest.mark.parametrize("name", ["", "1"])
def test_brokers_are_set_for_all_or_for_this_one(desk: Desk, name: str) -> None:
    (response,) = ask(desk, 1, edit(("log.segment.bytes", SET, "2000000"), kind=BROKER, name=name))

    assert response.error_code == ErrorCode.NONE, response.error_message
    assert desk.twin.image.configs_of(ResourceType.BROKER, name) == {"log.segment.bytes": "2000000"}


@pytest.mark.parametrize("kind", [LOGGER, METRICS, GROUP])
def test_nothing_to_change_is_done_wherever_it_is(desk: Desk, kind: int) -> None:
    (response,) = ask(desk, 1, edit(kind=kind, name="1"))

    assert response.error_code == ErrorCode.NONE
