"""ListConfigResources: everything that has configuration of its own."""

from collections.abc import Iterator

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.list_config_resources import ListConfigResourcesRequest
from brokers.server.handlers import list_config_resources
from tests.fakes.asking import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk(brokers=2) as opened:
        opened.twin.create_topic("orders")
        opened.twin.create_topic("payments")
        opened.follow()
        yield opened


def listed(desk: Desk, version: int, *types: int) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(types))
    answer = desk.ask(list_config_resources, version, request)
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_the_first_version_lists_client_metrics_of_which_there_are_none(desk: Desk) -> None:
    assert listed(desk, 0) == []


def test_no_types_are_all_types(desk: Desk) -> None:
    assert listed(desk, 1) == [
        (8, "1"),
        (8, "2"),
        (4, "1"),
        (4, "2"),
        (2, "orders"),
        (2, "payments"),
    ]


@pytest.mark.parametrize(
    ("kind", "names"),
    [(2, ["orders", "payments"]), (4, ["1", "2"]), (8, ["1", "2"]), (16, []), (32, [])],
)
def test_only_the_types_asked_for_are_listed(desk: Desk, kind: int, names: list[str]) -> None:
    assert listed(desk, 1, kind) == [(kind, name) for name in names]


@pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
def test_a_type_that_is_none_fails_the_whole_request(desk: Desk, kind: int) -> None:
    request = ListConfigResourcesRequest(resource_types=[2, kind])

    answer = desk.ask(list_config_resources, 1, request)

    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.config_resources == []
