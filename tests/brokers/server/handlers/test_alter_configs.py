"""AlterConfigs: what is not named goes back to its default."""

from collections.abc import Iterator, Mapping

import pytest

from brokers.cluster.image import ResourceType
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from brokers.server.handlers import alter_configs
from tests.fakes.asking import Desk

VERSIONS = range(3)
TOPIC, BROKER, LOGGER = 2, 4, 8


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        opened.twin.create_topic("orders", configs={"retention.ms": "1000"})
        opened.follow()
        yield opened


def whole(
    values: Mapping[str, str | None], *, kind: int = TOPIC, name: str = "orders"
) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in values.items()],
    )


def ask(
    desk: Desk, version: int, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = desk.ask(alter_configs, version, request).responses
    assert isinstance(responses, list)
    return responses


def configs(desk: Desk) -> Mapping[str, str]:
    return desk.twin.image.configs_of(ResourceType.TOPIC, "orders")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_set_is_replaced_as_a_whole(desk: Desk, version: int) -> None:
    (response,) = ask(desk, version, whole({"segment.ms": "7000"}))

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.resource_type, response.resource_name) == (TOPIC, "orders")
    assert configs(desk) == {"segment.ms": "7000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_naming_nothing_unsets_everything(desk: Desk, version: int) -> None:
    (response,) = ask(desk, version, whole({}))

    assert response.error_code == ErrorCode.NONE
    assert configs(desk) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_trial_changes_nothing(desk: Desk, version: int) -> None:
    (response,) = ask(desk, version, whole({"segment.ms": "7000"}), validate_only=True)

    assert response.error_code == ErrorCode.NONE
    assert configs(desk) == {"retention.ms": "1000"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (whole({"no.such.key": "1"}), ErrorCode.INVALID_CONFIG),
        (whole({"segment.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (whole({"segment.ms": None}), ErrorCode.INVALID_REQUEST),
        (whole({"segment.ms": "1"}, name="nobody"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (whole({"segment.ms": "1"}, kind=99), ErrorCode.INVALID_REQUEST),
        (whole({"log.segment.bytes": "2000000"}, kind=BROKER, name="2"), ErrorCode.INVALID_REQUEST),
        (whole({"root": "DEBUG"}, kind=LOGGER, name="1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_done_is_told_with_a_reason(
    desk: Desk, version: int, resource: AlterConfigsResource, error: ErrorCode
) -> None:
    (response,) = ask(desk, version, resource)

    assert response.error_code == error
    assert response.error_message
    assert configs(desk) == {"retention.ms": "1000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_resource_named_twice_is_left_alone_and_answered_twice(desk: Desk, version: int) -> None:
    responses = ask(desk, version, whole({}), whole({"segment.ms": "7000"}))

    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert configs(desk) == {"retention.ms": "1000"}
