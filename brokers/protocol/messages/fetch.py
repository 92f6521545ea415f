"""Fetch: read record batches, as a consumer or as a follower replica.
API 1, versions 4-18, flexible from 12.

The answer goes out when min_bytes are there, when max_wait_ms have passed, or at once if a
partition has an error.  A consumer sees records below the high watermark, with isolation level 1
below the last stable offset; a follower sees the whole log.  Batches are never cut: the first one
may begin below fetch_offset, and is sent even where it alone breaks the byte limits (KIP-74), so
that a large batch cannot stop a reader.  fetch_offset equal to the log end is an empty answer, no
error.

A fetch session (KIP-227) spares both sides the partitions that did not change.  Its requests name
only new, changed and forgotten partitions; its answers name only partitions with records, an
error, a moved high watermark, last stable offset or log start, or a preferred replica.  A broker
may always refuse a session by answering session_id 0, and then expects full requests.

Versions:
  4  isolation levels and aborted transactions, record format v2 (KIP-98); the oldest left by
     KIP-896
  5  log_start_offset (KIP-107)
  6  the client knows KAFKA_STORAGE_ERROR (KIP-112)
  7  fetch sessions and the error code of the whole answer (KIP-227)
  8  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  9  current_leader_epoch, to fence stale readers (KIP-320)
  10 zstd (KIP-110); below it such data is UNSUPPORTED_COMPRESSION_TYPE
  11 rack_id and preferred_read_replica (KIP-392)
  12 flexible (KIP-482); last_fetched_epoch, diverging_epoch, current_leader, snapshot_id (KIP-595)
  13 topic ids in place of names (KIP-516)
  14 the client knows OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
  15 replica_state with the broker epoch in place of replica_id (KIP-903)
  16 node_endpoints (KIP-951)
  17 replica_directory_id (KIP-853)
  18 the follower's high_watermark, so that the leader sends it a newer one at once (KIP-1166)
"""

from collections.abc import Sized

from brokers.protocol.schema import (
    INT32,
    Message,
    array,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class ReplicaState(Message):
    replica_id: int = int32("Broker id of the follower; -1 for a consumer.", default=-1, since=15)
    replica_epoch: int = int64(
        "Epoch of the follower's registration, so that a restarted one must not rejoin the "
        "in-sync set with outdated offsets; -1 if not known.",
        default=-1,
        since=15,
    )


class FetchPartition(Message):
    partition: int = int32()
    current_leader_epoch: int = int32(
        "Leader epoch the reader knows; older is FENCED_LEADER_EPOCH, newer UNKNOWN_LEADER_EPOCH, "
        "-1 is not checked.",
        default=-1,
        since=9,
        ignorable=True,
    )
    fetch_offset: int = int64(
        "First offset wanted; below the log start or above the log end is OFFSET_OUT_OF_RANGE."
    )
    last_fetched_epoch: int = int32(
        "Leader epoch of the last record the follower holds, checked against the leader's "
        "history; -1 is not checked.",
        default=-1,
        since=12,
    )
    log_start_offset: int = int64(
        "First offset that the follower holds; -1 from a consumer.",
        default=-1,
        since=5,
        ignorable=True,
    )
    partition_max_bytes: int = int32(
        "Most bytes wanted of this partition; the first batch of the answer may exceed it."
    )
    replica_directory_id: bytes = uuid(
        "Id of the follower's log dir; all zero from a consumer or if not known.",
        since=17,
        tag=0,
        ignorable=True,
    )
    high_watermark: int = int64(
        "High watermark the follower knows, -1 for none yet; the default, 2^63-1, does not take "
        "part in KIP-1166.",
        default=9223372036854775807,
        since=18,
        tag=1,
        ignorable=True,
    )


class FetchTopic(Message):
    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(
        "An id that this broker does not know is UNKNOWN_TOPIC_ID.", since=13, ignorable=True
    )
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Message):
    topic: str = string(since=7, until=12, ignorable=True)
    topic_id: bytes = uuid(since=13, ignorable=True)
    partitions: list[int] = array(INT32, "Partitions that leave the session.", since=7)


class FetchRequest(Message, key=1, versions=(4, 18), flexible=12):
    cluster_id: str | None = string(
        "Null if not known to the sender; only metadata quorums check it.",
        default=None,
        since=12,
        nullable=12,
        tag=0,
        ignorable=True,
    )
    replica_id: int = int32(
        "Broker id of the follower that asks; -1 for a consumer.", default=-1, until=14
    )
    replica_state: ReplicaState | None = nested(
        ReplicaState, "Which follower asks; absent from a consumer.", since=15, tag=1
    )
    max_wait_ms: int = int32("How long the broker may wait for min_bytes; 0 answers at once.")
    min_bytes: int = int32(
        "The answer goes out as soon as this much is there; 0 or less never waits."
    )
    max_bytes: int = int32(
        "Most bytes of records in the whole answer; its first batch may exceed it.",
        default=2147483647,
    )
    isolation_level: int = int8(
        "0 reads up to the high watermark, 1 (read committed) up to the last stable offset."
    )
    session_id: int = int32(
        "The session to continue; 0 for none. An unknown one is FETCH_SESSION_ID_NOT_FOUND.",
        since=7,
        ignorable=True,
    )
    session_epoch: int = int32(
        "-1 for no session (ends the one named), 0 opens one, then 1, 2 and so on; out of turn is "
        "INVALID_FETCH_SESSION_EPOCH.",
        default=-1,
        since=7,
        ignorable=True,
    )
    topics: list[FetchTopic] = array(
        FetchTopic,
        "The topics to read, served in this order up to max_bytes; in a session only new or "
        "changed ones.",
    )
    forgotten_topics_data: list[ForgottenTopic] = array(
        ForgottenTopic, "Partitions that leave the session.", since=7
    )
    rack_id: str = string(
        "Rack of the consumer, for the choice of a near replica; empty for none.",
        since=11,
        ignorable=True,
    )


class EpochEndOffset(Message):
    epoch: int = int32(
        "The largest leader epoch of the leader's log that is not above last_fetched_epoch.",
        default=-1,
        since=12,
    )
    end_offset: int = int64(
        "Where that epoch ends in the leader's log: the follower cuts its own there.",
        default=-1,
        since=12,
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = int32(
        "Broker id of the leader as this broker knows it; -1 for none.", default=-1, since=12
    )
    leader_epoch: int = int32("The epoch of that leader; -1 if not known.", default=-1, since=12)


class SnapshotId(Message):
    end_offset: int = int64("Metadata quorums only; -1 for none.", default=-1)
    epoch: int = int32("Metadata quorums only; -1 for none.", default=-1)


class AbortedTransaction(Message):
    producer_id: int = int64()
    first_offset: int = int64(
        "Where the transaction begins here; its abort marker in the records ends it."
    )


class PartitionData(Message):
    partition_index: int = int32()
    error_code: int = int16(
        "OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, "
        "OFFSET_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID, "
        "INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, UNSUPPORTED_COMPRESSION_TYPE for zstd before "
        "version 10, TOPIC_AUTHORIZATION_FAILED for a client that claims to be a replica."
    )
    high_watermark: int = int64("Records below it are on all in-sync replicas; -1 on error.")
    last_stable_offset: int = int64(
        "Records below it belong to no open transaction; -1 on error.", default=-1
    )
    log_start_offset: int = int64(
        "First offset that the log still holds; -1 on error.", default=-1, since=5, ignorable=True
    )
    diverging_epoch: EpochEndOffset | None = nested(
        EpochEndOffset,
        "Set, without records, where the follower's history parts from the leader's; else absent.",
        since=12,
        tag=0,
    )
    current_leader: LeaderIdAndEpoch | None = nested(
        LeaderIdAndEpoch,
        "Set with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH when the leader is known; else "
        "absent.",
        since=12,
        tag=1,
    )
    snapshot_id: SnapshotId | None = nested(
        SnapshotId,
        "Metadata quorums only: fetch this snapshot first; else absent.",
        since=12,
        tag=2,
    )
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction,
        "Null with isolation level 0; with 1 those that reach into the records, sorted by first "
        "offset.",
        nullable=0,
    )
    preferred_read_replica: int = int32(
        "Broker id of a nearer replica to read from, sent without records; -1 to stay here.",
        default=-1,
        since=11,
    )
    records: Sized | None = records(
        "Whole batches, the first perhaps from below fetch_offset; empty where there is nothing, "
        "since some clients fail on null.",
        nullable=0,
    )


class FetchableTopicResponse(Message):
    topic: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(
        "As in the request, also with UNKNOWN_TOPIC_ID.", since=13, ignorable=True
    )
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Message):
    node_id: int = int32("Broker id.", since=16)
    host: str = string(
        "As the broker advertises itself on the listener the request came in by.", since=16
    )
    port: int = int32(since=16)
    rack: str | None = string(
        "Null if the broker names no rack.", default=None, since=16, nullable=16
    )


class FetchResponse(Message, key=1, versions=(4, 18), flexible=12):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(
        "Error of the session, which leaves responses empty; partitions carry their own.",
        since=7,
        ignorable=True,
    )
    session_id: int = int32("The session that now holds these partitions; 0 for none.", since=7)
    responses: list[FetchableTopicResponse] = array(
        FetchableTopicResponse,
        "The partitions asked for, by topic; in an open session only those that changed.",
    )
    node_endpoints: list[NodeEndpoint] = array(
        NodeEndpoint,
        "Addresses of all leaders that current_leader names; else left out.",
        since=16,
        tag=0,
    )
