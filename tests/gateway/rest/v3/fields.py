"""The fields of the published interface, kind by kind. `?` marks what may be left out."""

FIELDS = {
    "KafkaCluster": "cluster_id controller? acls brokers broker_configs consumer_groups topics"
    " partition_reassignments",
    "KafkaBroker": "cluster_id broker_id host? port? rack? configs partition_replicas",
    "KafkaTopic": "cluster_id topic_name is_internal replication_factor partitions_count"
    " partitions configs partition_reassignments authorized_operations?",
    "KafkaTopicConfig": "cluster_id name value? is_default is_read_only is_sensitive source"
    " synonyms topic_name",
    "KafkaBrokerConfig": "cluster_id name value? is_default is_read_only is_sensitive source"
    " synonyms broker_id",
    "KafkaClusterConfig": "cluster_id name value? is_default is_read_only is_sensitive source"
    " synonyms config_type",
    "KafkaPartition": "cluster_id topic_name partition_id leader? replicas reassignment",
    "KafkaPartitionWithOffsets": "cluster_id topic_name partition_id earliest_offset latest_offset",
    "KafkaReplica": "cluster_id topic_name partition_id broker_id is_leader is_in_sync broker",
    "KafkaReassignment": "cluster_id topic_name partition_id adding_replicas removing_replicas"
    " replicas",
    "KafkaConsumerGroup": "cluster_id consumer_group_id is_simple partition_assignor state type"
    " is_mixed_consumer_group coordinator consumers lag_summary",
    "KafkaConsumer": "cluster_id consumer_group_id consumer_id instance_id? client_id assignments",
    "KafkaConsumerAssignment": "cluster_id consumer_group_id consumer_id topic_name partition_id"
    " partition lag",
    "KafkaConsumerLag": "cluster_id consumer_group_id topic_name partition_id current_offset"
    " log_end_offset lag consumer_id instance_id? client_id",
    "KafkaConsumerGroupLagSummary": "cluster_id consumer_group_id max_lag_consumer_id"
    " max_lag_instance_id? max_lag_client_id max_lag_topic_name max_lag_partition_id max_lag"
    " total_lag max_lag_consumer max_lag_partition",
    "KafkaAcl": "cluster_id resource_type resource_name pattern_type principal host operation"
    " permission",
}
# Every item has these, and every link this.
ITEM = {"kind", "metadata"}


def required(kind: str) -> set[str]:
    return ITEM | {name for name in FIELDS[kind].split() if not name.endswith("?")}


def allowed(kind: str) -> set[str]:
    return ITEM | {name.rstrip("?") for name in FIELDS[kind].split()}
