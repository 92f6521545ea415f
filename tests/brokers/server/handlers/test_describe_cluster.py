"""DescribeCluster: brokers, the controller, and what other nodes it is not."""

from collections.abc import Iterator

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_cluster import DescribeClusterRequest
from brokers.server.handlers import describe_cluster
from tests.fakes.asking import Desk

VERSIONS = range(3)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk(brokers=3) as opened:
        opened.twin.set_fenced(1, is_fenced=True)
        opened.follow()
        yield opened


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_that_serve_and_the_controller_are_told(desk: Desk, version: int) -> None:
    answer = desk.ask(describe_cluster, version, DescribeClusterRequest())

    assert answer.error_code == ErrorCode.NONE
    assert answer.cluster_id == desk.twin.cluster_id
    assert answer.controller_id == 2
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
        (2, "broker-2.test", 9092),
        (3, "broker-3.test", 9093),
    ]
    assert answer.cluster_authorized_operations == -(2**31)
    assert answer.endpoint_type == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_operations_are_told_to_who_asks(desk: Desk, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    assert desk.ask(describe_cluster, version, request).cluster_authorized_operations == 8096


def test_fenced_brokers_are_told_on_request_and_marked(desk: Desk) -> None:
    request = DescribeClusterRequest(include_fenced_brokers=True)

    answer = desk.ask(describe_cluster, 2, request)

    assert [(each.broker_id, each.is_fenced) for each in answer.brokers] == [
        (1, True),
        (2, False),
        (3, False),
    ]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_other_nodes_than_brokers_are_not_here(
    desk: Desk, version: int, endpoint_type: int, error: ErrorCode
) -> None:
    answer = desk.ask(
        describe_cluster, version, DescribeClusterRequest(endpoint_type=endpoint_type)
    )

    assert answer.error_code == error
    assert answer.error_message
    assert (answer.brokers, answer.controller_id) == ([], -1)
