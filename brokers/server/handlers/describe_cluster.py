"""DescribeCluster: returns the brokers, the controller and the id of the cluster.

Uses the image only. Controllers have no listener of their own here: the broker that Metadata names
as controller takes their requests.
"""

from typing import Final

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=60)

BROKERS: Final = 1
CONTROLLERS: Final = 2
# Without access control all clients may do everything: create 5, alter 7, describe 8, cluster
# action 9, describe configs 10, alter configs 11, idempotent write 12.
ALL_CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
NOT_ASKED: Final = -(2**31)


def handle(
    context: Context, _call: Call, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return _refused(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "this listener is a broker's, and endpoint type 2 asks for controllers: ask for type 1",
        )
    if request.endpoint_type != BROKERS:
        return _refused(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"endpoint type {request.endpoint_type} is not supported: only 1, brokers, is",
        )
    image = context.image
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
            for broker in image.brokers.values()
            if request.include_fenced_brokers or not broker.is_fenced
        ],
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )


def _refused(error: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error, error_message=message)
