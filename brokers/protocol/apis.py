"""The table of APIs: every request that a Kafka 4.3 broker listener knows, one row each.

A row has the versions with a codec; whether a broker serves and advertises the API is decided where
its handlers are registered. The message classes of a row are imported on first use, so that a
process loads only those that it uses.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Final

from brokers.protocol.schema import Message


@dataclass(frozen=True)
class Api:
    """One API: its key, its versions on the wire, and the module of its messages."""

    key: int
    name: str
    versions: tuple[int, int]
    flexible: int | None  # first version with compact lengths and tagged fields; None: none
    module: str
    advertised_from: int | None = None  # set if a lower version is announced than is served

    @cached_property
    def request(self) -> type[Message]:
        return self._message("Request")

    @cached_property
    def response(self) -> type[Message]:
        return self._message("Response")

    @property
    def advertised(self) -> tuple[int, int]:
        low, high = self.versions
        return (low if self.advertised_from is None else self.advertised_from, high)

    def serves(self, version: int) -> bool:
        return self.versions[0] <= version <= self.versions[1]

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    def _message(self, suffix: str) -> type[Message]:
        module = import_module(f"brokers.protocol.messages.{self.module}")
        message: type[Message] = getattr(module, self.name + suffix)
        return message


API_TABLE: Final = (
    Api(
        0, "Produce", (3, 13), 9, "produce", advertised_from=0
    ),  # librdkafka compresses only if it sees 0
    Api(1, "Fetch", (4, 18), 12, "fetch"),
    Api(2, "ListOffsets", (1, 11), 6, "list_offsets"),
    Api(3, "Metadata", (0, 13), 9, "metadata"),
    Api(8, "OffsetCommit", (2, 10), 8, "offset_commit"),
    Api(9, "OffsetFetch", (1, 10), 6, "offset_fetch"),
    Api(10, "FindCoordinator", (0, 6), 3, "find_coordinator"),
    Api(11, "JoinGroup", (0, 9), 6, "join_group"),
    Api(12, "Heartbeat", (0, 4), 4, "heartbeat"),
    Api(13, "LeaveGroup", (0, 5), 4, "leave_group"),
    Api(14, "SyncGroup", (0, 5), 4, "sync_group"),
    Api(15, "DescribeGroups", (0, 6), 5, "describe_groups"),
    Api(16, "ListGroups", (0, 5), 3, "list_groups"),
    Api(17, "SaslHandshake", (0, 1), None, "sasl_handshake"),
    Api(18, "ApiVersions", (0, 4), 3, "api_versions"),
    Api(19, "CreateTopics", (2, 7), 5, "create_topics"),
    Api(20, "DeleteTopics", (1, 6), 4, "delete_topics"),
    Api(21, "DeleteRecords", (0, 2), 2, "delete_records"),
    Api(22, "InitProducerId", (0, 5), 2, "init_producer_id"),
    Api(23, "OffsetForLeaderEpoch", (2, 4), 4, "offset_for_leader_epoch"),
    Api(24, "AddPartitionsToTxn", (0, 5), 3, "add_partitions_to_txn"),
    Api(25, "AddOffsetsToTxn", (0, 4), 3, "add_offsets_to_txn"),
    Api(26, "EndTxn", (0, 5), 3, "end_txn"),
    Api(27, "WriteTxnMarkers", (1, 2), 1, "write_txn_markers"),
    Api(28, "TxnOffsetCommit", (0, 5), 3, "txn_offset_commit"),
    Api(29, "DescribeAcls", (1, 3), 2, "describe_acls"),
    Api(30, "CreateAcls", (1, 3), 2, "create_acls"),
    Api(31, "DeleteAcls", (1, 3), 2, "delete_acls"),
    Api(32, "DescribeConfigs", (1, 4), 4, "describe_configs"),
    Api(33, "AlterConfigs", (0, 2), 2, "alter_configs"),
    Api(34, "AlterReplicaLogDirs", (1, 2), 2, "alter_replica_log_dirs"),
    Api(35, "DescribeLogDirs", (1, 5), 2, "describe_log_dirs"),
    Api(36, "SaslAuthenticate", (0, 2), 2, "sasl_authenticate"),
    Api(37, "CreatePartitions", (0, 3), 2, "create_partitions"),
    Api(38, "CreateDelegationToken", (1, 3), 2, "create_delegation_token"),
    Api(39, "RenewDelegationToken", (1, 2), 2, "renew_delegation_token"),
    Api(40, "ExpireDelegationToken", (1, 2), 2, "expire_delegation_token"),
    Api(41, "DescribeDelegationToken", (1, 3), 2, "describe_delegation_token"),
    Api(42, "DeleteGroups", (0, 2), 2, "delete_groups"),
    Api(43, "ElectLeaders", (0, 2), 2, "elect_leaders"),
    Api(44, "IncrementalAlterConfigs", (0, 1), 1, "incremental_alter_configs"),
    Api(45, "AlterPartitionReassignments", (0, 1), 0, "alter_partition_reassignments"),
    Api(46, "ListPartitionReassignments", (0, 0), 0, "list_partition_reassignments"),
    Api(47, "OffsetDelete", (0, 0), None, "offset_delete"),
    Api(48, "DescribeClientQuotas", (0, 1), 1, "describe_client_quotas"),
    Api(49, "AlterClientQuotas", (0, 1), 1, "alter_client_quotas"),
    Api(50, "DescribeUserScramCredentials", (0, 0), 0, "describe_user_scram_credentials"),
    Api(51, "AlterUserScramCredentials", (0, 0), 0, "alter_user_scram_credentials"),
    Api(55, "DescribeQuorum", (0, 2), 0, "describe_quorum"),
    Api(57, "UpdateFeatures", (0, 2), 0, "update_features"),
    Api(60, "DescribeCluster", (0, 2), 0, "describe_cluster"),
    Api(61, "DescribeProducers", (0, 0), 0, "describe_producers"),
    Api(64, "UnregisterBroker", (0, 0), 0, "unregister_broker"),
    Api(65, "DescribeTransactions", (0, 0), 0, "describe_transactions"),
    Api(66, "ListTransactions", (0, 2), 0, "list_transactions"),
    Api(68, "ConsumerGroupHeartbeat", (0, 1), 0, "consumer_group_heartbeat"),
    Api(69, "ConsumerGroupDescribe", (0, 1), 0, "consumer_group_describe"),
    Api(71, "GetTelemetrySubscriptions", (0, 0), 0, "get_telemetry_subscriptions"),
    Api(72, "PushTelemetry", (0, 0), 0, "push_telemetry"),
    Api(74, "ListConfigResources", (0, 1), 0, "list_config_resources"),
    Api(75, "DescribeTopicPartitions", (0, 0), 0, "describe_topic_partitions"),
    Api(76, "ShareGroupHeartbeat", (1, 1), 0, "share_group_heartbeat"),
    Api(77, "ShareGroupDescribe", (1, 1), 0, "share_group_describe"),
    Api(78, "ShareFetch", (1, 2), 0, "share_fetch"),
    Api(79, "ShareAcknowledge", (1, 2), 0, "share_acknowledge"),
    Api(80, "AddRaftVoter", (0, 1), 0, "add_raft_voter"),
    Api(81, "RemoveRaftVoter", (0, 0), 0, "remove_raft_voter"),
    Api(83, "InitializeShareGroupState", (0, 0), 0, "initialize_share_group_state"),
    Api(84, "ReadShareGroupState", (0, 0), 0, "read_share_group_state"),
    Api(85, "WriteShareGroupState", (0, 1), 0, "write_share_group_state"),
    Api(86, "DeleteShareGroupState", (0, 0), 0, "delete_share_group_state"),
    Api(87, "ReadShareGroupStateSummary", (0, 1), 0, "read_share_group_state_summary"),
    Api(88, "StreamsGroupHeartbeat", (0, 0), 0, "streams_group_heartbeat"),
    Api(89, "StreamsGroupDescribe", (0, 0), 0, "streams_group_describe"),
    Api(90, "DescribeShareGroupOffsets", (0, 1), 0, "describe_share_group_offsets"),
    Api(91, "AlterShareGroupOffsets", (0, 0), 0, "alter_share_group_offsets"),
    Api(92, "DeleteShareGroupOffsets", (0, 0), 0, "delete_share_group_offsets"),
)

APIS: Final = {api.key: api for api in API_TABLE}
