"""DescribeCluster: show the brokers, the controller and the id of the cluster.
API 60, versions 0-2, flexible from 0.

The cluster's part of Metadata, without topics, for tools.

Versions:
  0  (KIP-700)
  1  endpoint_type, so that a tool can ask controllers too (KIP-919)
  2  fenced brokers on request (KIP-1073)
"""

from brokers.protocol.schema import Message, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, key=60, versions=(0, 2), flexible=0):
    include_cluster_authorized_operations: bool = boolean(
        "Whether to fill in cluster_authorized_operations."
    )
    endpoint_type: int = int8(
        "1 for brokers, 2 for controllers, which here is MISMATCHED_ENDPOINT_TYPE; others are "
        "UNSUPPORTED_ENDPOINT_TYPE.",
        default=1,
        since=1,
    )
    include_fenced_brokers: bool = boolean(
        "Whether to list brokers that are registered but fenced.", since=2
    )


class DescribeClusterBroker(Message):
    broker_id: int = int32()
    host: str = string("As advertised on the listener the request came in by.")
    port: int = int32()
    rack: str | None = string("Null if the broker names no rack.", default=None, nullable=0)
    is_fenced: bool = boolean("True only for brokers listed by include_fenced_brokers.", since=2)


class DescribeClusterResponse(Message, key=60, versions=(0, 2), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(
        "MISMATCHED_ENDPOINT_TYPE or UNSUPPORTED_ENDPOINT_TYPE, from version 1 on."
    )
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    endpoint_type: int = int8("1: the nodes below are brokers.", default=1, since=1)
    cluster_id: str = string()
    controller_id: int = int32(
        "Broker id to send admin requests to; -1 if unavailable.", default=-1
    )
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n; -2^31 if not asked for.",
        default=-2147483648,
    )
