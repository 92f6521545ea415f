"""Metadata: return the brokers, and the leader of each partition.
API 3, versions 0-13, flexible from 9.

The first request of every client, and the answer to every NOT_LEADER_OR_FOLLOWER.  Addresses are
those of the listener that the request came in by.  Every leader named is in brokers, the
controller is a broker that answers, leader epochs of a topic id never go back, and a topic keeps
its id until it is deleted.  The request may create a topic that does not exist: it is answered
with UNKNOWN_TOPIC_OR_PARTITION, and the next request finds the topic; if the creation takes longer
than an answer should, the error is LEADER_NOT_AVAILABLE until then.  Topics that the principal may
not describe are left out of "all" and are TOPIC_AUTHORIZATION_FAILED when requested by name.

Versions:
  1  null asks for all topics; rack, controller_id, is_internal (KIP-4)
  2  cluster_id (KIP-78)
  3  throttle time (KIP-124)
  4  allow_auto_topic_creation
  5  offline_replicas (KIP-112)
  6  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  7  leader_epoch (KIP-320)
  8  authorized operations on request (KIP-430)
  9  flexible (KIP-482)
  10 topic_id in the answer (KIP-516)
  11 the cluster's authorized operations moved to DescribeCluster (KIP-700)
  12 topics may be asked for by id (KIP-516)
  13 error code of the whole answer, for REBOOTSTRAP_REQUIRED (KIP-1102)
"""

from brokers.protocol.schema import INT32, Message, array, boolean, int16, int32, string, uuid


class MetadataRequestTopic(Message):
    topic_id: bytes = uuid(
        "Asks by id where name is null, from version 12 on; else all zero. UNKNOWN_TOPIC_ID if "
        "it does not exist.",
        since=10,
        ignorable=True,
    )
    name: str | None = string(
        "Null to ask by topic_id; before version 12 that is INVALID_REQUEST.", nullable=10
    )


class MetadataRequest(Message, key=3, versions=(0, 13), flexible=9):
    topics: list[MetadataRequestTopic] | None = array(
        MetadataRequestTopic,
        "Null for all topics, empty for none; version 0 has no null, and empty is all.",
        nullable=1,
    )
    allow_auto_topic_creation: bool = boolean(
        "Whether a missing topic may be created, where auto.create.topics.enable allows it; true "
        "before version 4.",
        default=True,
        since=4,
    )
    include_cluster_authorized_operations: bool = boolean(
        "Whether to fill in cluster_authorized_operations.", since=8, until=10
    )
    include_topic_authorized_operations: bool = boolean(
        "Whether to fill in topic_authorized_operations.", since=8
    )


class MetadataResponseBroker(Message):
    node_id: int = int32("Broker id.")
    host: str = string("As advertised on the listener the request came in by.")
    port: int = int32()
    rack: str | None = string(
        "Null if the broker names no rack.", default=None, since=1, nullable=1, ignorable=True
    )


class MetadataResponsePartition(Message):
    error_code: int = int16(
        "LEADER_NOT_AVAILABLE without a leader, LISTENER_NOT_FOUND if the leader lacks this "
        "listener."
    )
    partition_index: int = int32()
    leader_id: int = int32("Broker id; -1 while there is no leader.")
    leader_epoch: int = int32(
        "-1 if not known; clients drop answers with an older epoch than they have seen.",
        default=-1,
        since=7,
        ignorable=True,
    )
    replica_nodes: list[int] = array(INT32, "Broker ids, the preferred leader first.")
    isr_nodes: list[int] = array(
        INT32, "Broker ids of the replicas in sync, the leader among them."
    )
    offline_replicas: list[int] = array(
        INT32,
        "Broker ids of replicas whose broker is away or whose log dir has failed.",
        since=5,
        ignorable=True,
    )


class MetadataResponseTopic(Message):
    error_code: int = int16(
        "UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, LEADER_NOT_AVAILABLE while it is created "
        "or the broker starts, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED; or the "
        "reason why it cannot be created, such as POLICY_VIOLATION."
    )
    name: str | None = string(
        "Null only for a topic asked for by an id that leads to no name.", nullable=12
    )
    topic_id: bytes = uuid(
        "All zero only with an error, for a topic asked for by name.", since=10, ignorable=True
    )
    is_internal: bool = boolean(
        "True for __consumer_offsets, __transaction_state and their like.", since=1, ignorable=True
    )
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n; -2^31 if not asked for.",
        default=-2147483648,
        since=8,
    )


class MetadataResponse(Message, key=3, versions=(0, 13), flexible=9):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=3,
        ignorable=True,
    )
    brokers: list[MetadataResponseBroker] = array(
        MetadataResponseBroker, "All brokers that are alive and not fenced."
    )
    cluster_id: str | None = string(
        "Never null from this broker.", default=None, since=2, nullable=2, ignorable=True
    )
    controller_id: int = int32(
        "Broker id to send admin requests to; -1 if unavailable.",
        default=-1,
        since=1,
        ignorable=True,
    )
    topics: list[MetadataResponseTopic] = array(
        MetadataResponseTopic, "In the order asked for; all that may be seen if null was sent."
    )
    cluster_authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n; -2^31 if not asked for.",
        default=-2147483648,
        since=8,
        until=10,
    )
    error_code: int = int16(
        "REBOOTSTRAP_REQUIRED makes the client start again from its bootstrap servers; else 0.",
        since=13,
        ignorable=True,
    )
