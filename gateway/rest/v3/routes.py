"""The rows of version 3 that views serve: administration.

The docstrings of the views" functions describe them for OpenAPI.
"""

from functools import partial
from typing import Any, Final

from gateway.access.operations import Kind, Operation
from gateway.rest.gate import Right
from gateway.rest.route import Route
from gateway.rest.v3 import acls, clusters, configs, groups, schemas, topics
from gateway.rest.v3.views import V3View

C: Final = "/clusters/{cluster_id}"
TOPIC: Final = f"{C}/topics/{{topic_name}}"
PARTITION: Final = f"{TOPIC}/partitions/{{partition_id}}"
BROKER: Final = f"{C}/brokers/{{broker_id}}"
GROUP: Final = f"{C}/consumer-groups/{{consumer_group_id}}"
CONSUMER: Final = f"{GROUP}/consumers/{{consumer_id}}"
SPOT: Final = "{topic_name}/partitions/{partition_id}"

SEE_CLUSTER: Final = Right(operation=Operation.VIEW, kind=Kind.CLUSTER)
SEE_TOPIC: Final = Right(operation=Operation.VIEW, kind=Kind.TOPIC, name="topic_name")
SEE_GROUP: Final = Right(operation=Operation.VIEW, kind=Kind.GROUP, name="consumer_group_id")
ALTER_TOPIC: Final = Right(operation=Operation.ALTER_TOPICS, kind=Kind.TOPIC, name="topic_name")
DELETE_TOPIC: Final = Right(operation=Operation.DELETE_TOPICS, kind=Kind.TOPIC, name="topic_name")
CONFIGURE_TOPIC: Final = Right(
    operation=Operation.ALTER_CONFIGS, kind=Kind.TOPIC, name="topic_name"
)
CONFIGURE_BROKERS: Final = Right(operation=Operation.ALTER_CONFIGS, kind=Kind.CLUSTER)
# Setting ACLs for other users is governing them.
GOVERN: Final = Right(operation=Operation.MANAGE_USERS, kind=Kind.CONSOLE)

AclDataList: Final = schemas.listed(schemas.AclData)
BrokerConfigDataList: Final = schemas.listed(schemas.BrokerConfigData)
BrokerDataList: Final = schemas.listed(schemas.BrokerData)
ClusterConfigDataList: Final = schemas.listed(schemas.ClusterConfigData)
ClusterDataList: Final = schemas.listed(schemas.ClusterData)
ConsumerAssignmentDataList: Final = schemas.listed(schemas.ConsumerAssignmentData)
ConsumerDataList: Final = schemas.listed(schemas.ConsumerData)
ConsumerGroupDataList: Final = schemas.listed(schemas.ConsumerGroupData)
ConsumerLagDataList: Final = schemas.listed(schemas.ConsumerLagData)
PartitionDataList: Final = schemas.listed(schemas.PartitionData)
ReassignmentDataList: Final = schemas.listed(schemas.ReassignmentData)
ReplicaDataList: Final = schemas.listed(schemas.ReplicaData)
TopicConfigDataList: Final = schemas.listed(schemas.TopicConfigData)
TopicDataList: Final = schemas.listed(schemas.TopicData)

NEEDS_FORCE: Final = "The topic keeps state of the cluster, and `force` is not true (40904)."


def _row(
    tag: str,
    method: str,
    path: str,
    view: type[V3View],
    *rights: Right,
    **more: Any,  # noqa: ANN401 - fields of a row
) -> Route:
    return Route(tag=tag, method=method, path=path, view=view, rights=rights, **more)


ACLS: Final = partial(_row, "ACLs")
BROKERS: Final = partial(_row, "Brokers")
CLUSTERS: Final = partial(_row, "Clusters")
CONFIGS: Final = partial(_row, "Configs")
GROUPS: Final = partial(_row, "Consumer groups")
PARTITIONS: Final = partial(_row, "Partitions")
TOPICS: Final = partial(_row, "Topics")

# Fixed words come before names in the same place.
ROUTES: Final = (
    CLUSTERS("GET", "/clusters", clusters.ClustersView, answer=ClusterDataList),
    CLUSTERS("GET", C, clusters.ClusterView, answer=schemas.ClusterData),
    ACLS(
        "POST",
        f"{C}/acls:batch",
        acls.AclBatchView,
        GOVERN,
        body=schemas.CreateAclRequestDataList,
        status=201,
    ),
    ACLS(
        "GET", f"{C}/acls", acls.AclsView, SEE_CLUSTER, filter=schemas.AclFilter, answer=AclDataList
    ),
    ACLS("POST", f"{C}/acls", acls.AclsView, GOVERN, body=schemas.CreateAclRequestData, status=201),
    ACLS(
        "DELETE",
        f"{C}/acls",
        acls.AclsView,
        GOVERN,
        filter=schemas.AclDeletion,
        answer=schemas.DeletedAcls,
    ),
    CONFIGS(
        "GET",
        f"{C}/broker-configs",
        configs.ClusterConfigsView,
        SEE_CLUSTER,
        answer=ClusterConfigDataList,
    ),
    CONFIGS(
        "POST",
        f"{C}/broker-configs:alter",
        configs.AlterClusterConfigsView,
        CONFIGURE_BROKERS,
        body=schemas.AlterConfigBatchRequestData,
        status=204,
    ),
    CONFIGS(
        "GET",
        f"{C}/broker-configs/{{name}}",
        configs.ClusterConfigView,
        SEE_CLUSTER,
        answer=schemas.ClusterConfigData,
    ),
    CONFIGS(
        "PUT",
        f"{C}/broker-configs/{{name}}",
        configs.ClusterConfigView,
        CONFIGURE_BROKERS,
        body=schemas.UpdateConfigRequestData,
        status=204,
    ),
    CONFIGS(
        "DELETE",
        f"{C}/broker-configs/{{name}}",
        configs.ClusterConfigView,
        CONFIGURE_BROKERS,
        status=204,
    ),
    BROKERS("GET", f"{C}/brokers", clusters.BrokersView, SEE_CLUSTER, answer=BrokerDataList),
    CONFIGS(
        "GET",
        f"{C}/brokers/-/configs",
        configs.AllBrokerConfigsView,
        SEE_CLUSTER,
        answer=BrokerConfigDataList,
    ),
    BROKERS("GET", BROKER, clusters.BrokerView, SEE_CLUSTER, answer=schemas.BrokerData),
    CONFIGS(
        "GET",
        f"{BROKER}/configs",
        configs.BrokerConfigsView,
        SEE_CLUSTER,
        answer=BrokerConfigDataList,
    ),
    CONFIGS(
        "POST",
        f"{BROKER}/configs:alter",
        configs.AlterBrokerConfigsView,
        CONFIGURE_BROKERS,
        body=schemas.AlterConfigBatchRequestData,
        status=204,
    ),
    CONFIGS(
        "GET",
        f"{BROKER}/configs/{{name}}",
        configs.BrokerConfigView,
        SEE_CLUSTER,
        answer=schemas.BrokerConfigData,
    ),
    CONFIGS(
        "PUT",
        f"{BROKER}/configs/{{name}}",
        configs.BrokerConfigView,
        CONFIGURE_BROKERS,
        body=schemas.UpdateConfigRequestData,
        status=204,
    ),
    CONFIGS(
        "DELETE",
        f"{BROKER}/configs/{{name}}",
        configs.BrokerConfigView,
        CONFIGURE_BROKERS,
        status=204,
    ),
    BROKERS(
        "GET",
        f"{BROKER}/partition-replicas",
        clusters.BrokerReplicasView,
        SEE_CLUSTER,
        answer=ReplicaDataList,
    ),
    GROUPS("GET", f"{C}/consumer-groups", groups.ConsumerGroupsView, answer=ConsumerGroupDataList),
    GROUPS("GET", GROUP, groups.ConsumerGroupView, SEE_GROUP, answer=schemas.ConsumerGroupData),
    GROUPS("GET", f"{GROUP}/consumers", groups.ConsumersView, SEE_GROUP, answer=ConsumerDataList),
    GROUPS(
        "GET",
        f"{GROUP}/lag-summary",
        groups.LagSummaryView,
        SEE_GROUP,
        answer=schemas.ConsumerGroupLagSummaryData,
    ),
    GROUPS("GET", f"{GROUP}/lags", groups.LagsView, SEE_GROUP, answer=ConsumerLagDataList),
    GROUPS(
        "GET",
        f"{GROUP}/lags/{SPOT}",
        groups.LagView,
        SEE_TOPIC,
        SEE_GROUP,
        answer=schemas.ConsumerLagData,
    ),
    GROUPS("GET", CONSUMER, groups.ConsumerView, SEE_GROUP, answer=schemas.ConsumerData),
    GROUPS(
        "GET",
        f"{CONSUMER}/assignments",
        groups.AssignmentsView,
        SEE_GROUP,
        answer=ConsumerAssignmentDataList,
    ),
    GROUPS(
        "GET",
        f"{CONSUMER}/assignments/{SPOT}",
        groups.AssignmentView,
        SEE_TOPIC,
        SEE_GROUP,
        answer=schemas.ConsumerAssignmentData,
    ),
    TOPICS(
        "GET",
        f"{C}/topics",
        topics.TopicsView,
        query=("includeAuthorizedOperations",),
        answer=TopicDataList,
    ),
    TOPICS(
        "POST",
        f"{C}/topics",
        topics.TopicsView,
        body=schemas.CreateTopicRequestData,
        status=(200, 201),
        answer=schemas.TopicData,
    ),
    CONFIGS(
        "GET", f"{C}/topics/-/configs", configs.AllTopicConfigsView, answer=TopicConfigDataList
    ),
    CONFIGS(
        "POST",
        f"{C}/topics/-/configs:alter",
        configs.AlterAllTopicConfigsView,
        body=schemas.AlterTopicsConfigBatchRequestData,
        status=204,
        partly=schemas.TopicConfigFailures,
    ),
    PARTITIONS(
        "GET",
        f"{C}/topics/-/partitions/-/reassignment",
        topics.AllReassignmentsView,
        SEE_CLUSTER,
        answer=ReassignmentDataList,
    ),
    TOPICS(
        "GET",
        TOPIC,
        topics.TopicView,
        SEE_TOPIC,
        query=("include_authorized_operations",),
        answer=schemas.TopicData,
    ),
    TOPICS(
        "PATCH",
        TOPIC,
        topics.TopicView,
        ALTER_TOPIC,
        body=schemas.UpdatePartitionCountRequestData,
        answer=schemas.TopicData,
    ),
    TOPICS(
        "DELETE",
        TOPIC,
        topics.TopicView,
        DELETE_TOPIC,
        status=204,
        query=("force",),
        errors={409: NEEDS_FORCE},
    ),
    CONFIGS(
        "GET", f"{TOPIC}/configs", configs.TopicConfigsView, SEE_TOPIC, answer=TopicConfigDataList
    ),
    CONFIGS(
        "POST",
        f"{TOPIC}/configs:alter",
        configs.AlterTopicConfigsView,
        CONFIGURE_TOPIC,
        body=schemas.AlterConfigBatchRequestData,
        status=204,
    ),
    CONFIGS(
        "GET",
        f"{TOPIC}/configs/{{name}}",
        configs.TopicConfigView,
        SEE_TOPIC,
        answer=schemas.TopicConfigData,
    ),
    CONFIGS(
        "PUT",
        f"{TOPIC}/configs/{{name}}",
        configs.TopicConfigView,
        CONFIGURE_TOPIC,
        body=schemas.UpdateConfigRequestData,
        status=204,
    ),
    CONFIGS(
        "DELETE",
        f"{TOPIC}/configs/{{name}}",
        configs.TopicConfigView,
        CONFIGURE_TOPIC,
        status=204,
    ),
    PARTITIONS(
        "GET", f"{TOPIC}/partitions", topics.PartitionsView, SEE_TOPIC, answer=PartitionDataList
    ),
    PARTITIONS(
        "GET",
        f"{TOPIC}/partitions/-/reassignment",
        topics.TopicReassignmentsView,
        SEE_TOPIC,
        answer=ReassignmentDataList,
    ),
    PARTITIONS("GET", PARTITION, topics.PartitionView, SEE_TOPIC, answer=schemas.PartitionData),
    PARTITIONS(
        "GET",
        f"{PARTITION}/offset",
        topics.OffsetsView,
        SEE_TOPIC,
        query=("offset_type",),
        answer=schemas.PartitionWithOffsetsData,
    ),
    PARTITIONS(
        "GET",
        f"{PARTITION}/reassignment",
        topics.ReassignmentView,
        SEE_TOPIC,
        answer=schemas.ReassignmentData,
    ),
    PARTITIONS(
        "GET", f"{PARTITION}/replicas", topics.ReplicasView, SEE_TOPIC, answer=ReplicaDataList
    ),
    PARTITIONS(
        "GET",
        f"{PARTITION}/replicas/{{broker_id}}",
        topics.ReplicaView,
        SEE_TOPIC,
        answer=schemas.ReplicaData,
    ),
)
