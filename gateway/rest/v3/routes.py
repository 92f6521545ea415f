"""The rows of version 3 that views serve: administration.

The docstrings of the views' functions describe them for OpenAPI.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gateway.access.operations import Kind, Operation
from gateway.rest.gate import Right
from gateway.rest.route import Route
from gateway.rest.v3 import acls, clusters, configs, groups, topics
from gateway.rest.v3.schemas import (
    AclData,
    AclDeletion,
    AclFilter,
    AlterConfigBatchRequestData,
    AlterTopicsConfigBatchRequestData,
    BrokerConfigData,
    BrokerData,
    ClusterConfigData,
    ClusterData,
    ConsumerAssignmentData,
    ConsumerData,
    ConsumerGroupData,
    ConsumerGroupLagSummaryData,
    ConsumerLagData,
    CreateAclRequestData,
    CreateAclRequestDataList,
    CreateTopicRequestData,
    DeletedAcls,
    PartitionData,
    PartitionWithOffsetsData,
    ReassignmentData,
    ReplicaData,
    TopicConfigData,
    TopicConfigFailures,
    TopicData,
    UpdateConfigRequestData,
    UpdatePartitionCountRequestData,
    listed,
)
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
# ACLs are rights of other users, so changing them needs the right to manage users.
GOVERN: Final = Right(operation=Operation.MANAGE_USERS, kind=Kind.CONSOLE)

NEEDS_FORCE: Final = "The topic keeps state of the cluster, and `force` is not true (40904)."


def _call(method: str, *rights: Right, **more: Any) -> Mapping[str, Any]:  # noqa: ANN401 - fields of a row
    return {"method": method, "rights": rights, **more}


def _rows(tag: str, path: str, view: type[V3View], *calls: Mapping[str, Any]) -> Iterator[Route]:
    for call in calls:
        yield Route(tag=tag, path=path, view=view, **call)


GET: Final = partial(_call, "GET")
POST: Final = partial(_call, "POST")
PUT: Final = partial(_call, "PUT")
PATCH: Final = partial(_call, "PATCH")
DELETE: Final = partial(_call, "DELETE")

ACLS: Final = partial(_rows, "ACLs")
BROKERS: Final = partial(_rows, "Brokers")
CLUSTERS: Final = partial(_rows, "Clusters")
CONFIGS: Final = partial(_rows, "Configs")
GROUPS: Final = partial(_rows, "Consumer groups")
PARTITIONS: Final = partial(_rows, "Partitions")
TOPICS: Final = partial(_rows, "Topics")

# Fixed words come before names in the same place.
ROUTES: Final = (
    *CLUSTERS("/clusters", clusters.ClustersView, GET(answer=listed(ClusterData))),
    *CLUSTERS(C, clusters.ClusterView, GET(answer=ClusterData)),
    *ACLS(
        f"{C}/acls:batch",
        acls.AclBatchView,
        POST(GOVERN, body=CreateAclRequestDataList, status=201),
    ),
    *ACLS(
        f"{C}/acls",
        acls.AclsView,
        GET(SEE_CLUSTER, filter=AclFilter, answer=listed(AclData)),
        POST(GOVERN, body=CreateAclRequestData, status=201),
        DELETE(GOVERN, filter=AclDeletion, answer=DeletedAcls),
    ),
    *CONFIGS(
        f"{C}/broker-configs",
        configs.ClusterConfigsView,
        GET(SEE_CLUSTER, answer=listed(ClusterConfigData)),
    ),
    *CONFIGS(
        f"{C}/broker-configs:alter",
        configs.AlterClusterConfigsView,
        POST(CONFIGURE_BROKERS, body=AlterConfigBatchRequestData, status=204),
    ),
    *CONFIGS(
        f"{C}/broker-configs/{{name}}",
        configs.ClusterConfigView,
        GET(SEE_CLUSTER, answer=ClusterConfigData),
        PUT(CONFIGURE_BROKERS, body=UpdateConfigRequestData, status=204),
        DELETE(CONFIGURE_BROKERS, status=204),
    ),
    *BROKERS(f"{C}/brokers", clusters.BrokersView, GET(SEE_CLUSTER, answer=listed(BrokerData))),
    *CONFIGS(
        f"{C}/brokers/-/configs",
        configs.AllBrokerConfigsView,
        GET(SEE_CLUSTER, answer=listed(BrokerConfigData)),
    ),
    *BROKERS(BROKER, clusters.BrokerView, GET(SEE_CLUSTER, answer=BrokerData)),
    *CONFIGS(
        f"{BROKER}/configs",
        configs.BrokerConfigsView,
        GET(SEE_CLUSTER, answer=listed(BrokerConfigData)),
    ),
    *CONFIGS(
        f"{BROKER}/configs:alter",
        configs.AlterBrokerConfigsView,
        POST(CONFIGURE_BROKERS, body=AlterConfigBatchRequestData, status=204),
    ),
    *CONFIGS(
        f"{BROKER}/configs/{{name}}",
        configs.BrokerConfigView,
        GET(SEE_CLUSTER, answer=BrokerConfigData),
        PUT(CONFIGURE_BROKERS, body=UpdateConfigRequestData, status=204),
        DELETE(CONFIGURE_BROKERS, status=204),
    ),
    *BROKERS(
        f"{BROKER}/partition-replicas",
        clusters.BrokerReplicasView,
        GET(SEE_CLUSTER, answer=listed(ReplicaData)),
    ),
    *GROUPS(
        f"{C}/consumer-groups", groups.ConsumerGroupsView, GET(answer=listed(ConsumerGroupData))
    ),
    *GROUPS(GROUP, groups.ConsumerGroupView, GET(SEE_GROUP, answer=ConsumerGroupData)),
    *GROUPS(
        f"{GROUP}/consumers", groups.ConsumersView, GET(SEE_GROUP, answer=listed(ConsumerData))
    ),
    *GROUPS(
        f"{GROUP}/lag-summary",
        groups.LagSummaryView,
        GET(SEE_GROUP, answer=ConsumerGroupLagSummaryData),
    ),
    *GROUPS(f"{GROUP}/lags", groups.LagsView, GET(SEE_GROUP, answer=listed(ConsumerLagData))),
    *GROUPS(
        f"{GROUP}/lags/{SPOT}", groups.LagView, GET(SEE_TOPIC, SEE_GROUP, answer=ConsumerLagData)
    ),
    *GROUPS(CONSUMER, groups.ConsumerView, GET(SEE_GROUP, answer=ConsumerData)),
    *GROUPS(
        f"{CONSUMER}/assignments",
        groups.AssignmentsView,
        GET(SEE_GROUP, answer=listed(ConsumerAssignmentData)),
    ),
    *GROUPS(
        f"{CONSUMER}/assignments/{SPOT}",
        groups.AssignmentView,
        GET(SEE_TOPIC, SEE_GROUP, answer=ConsumerAssignmentData),
    ),
    *TOPICS(
        f"{C}/topics",
        topics.TopicsView,
        GET(query=("includeAuthorizedOperations",), answer=listed(TopicData)),
        POST(body=CreateTopicRequestData, status=(200, 201), answer=TopicData),
    ),
    *CONFIGS(
        f"{C}/topics/-/configs", configs.AllTopicConfigsView, GET(answer=listed(TopicConfigData))
    ),
    *CONFIGS(
        f"{C}/topics/-/configs:alter",
        configs.AlterAllTopicConfigsView,
        POST(body=AlterTopicsConfigBatchRequestData, status=204, partly=TopicConfigFailures),
    ),
    *PARTITIONS(
        f"{C}/topics/-/partitions/-/reassignment",
        topics.AllReassignmentsView,
        GET(SEE_CLUSTER, answer=listed(ReassignmentData)),
    ),
    *TOPICS(
        TOPIC,
        topics.TopicView,
        GET(SEE_TOPIC, query=("include_authorized_operations",), answer=TopicData),
        PATCH(ALTER_TOPIC, body=UpdatePartitionCountRequestData, answer=TopicData),
        DELETE(DELETE_TOPIC, status=204, query=("force",), errors={409: NEEDS_FORCE}),
    ),
    *CONFIGS(
        f"{TOPIC}/configs", configs.TopicConfigsView, GET(SEE_TOPIC, answer=listed(TopicConfigData))
    ),
    *CONFIGS(
        f"{TOPIC}/configs:alter",
        configs.AlterTopicConfigsView,
        POST(CONFIGURE_TOPIC, body=AlterConfigBatchRequestData, status=204),
    ),
    *CONFIGS(
        f"{TOPIC}/configs/{{name}}",
        configs.TopicConfigView,
        GET(SEE_TOPIC, answer=TopicConfigData),
        PUT(CONFIGURE_TOPIC, body=UpdateConfigRequestData, status=204),
        DELETE(CONFIGURE_TOPIC, status=204),
    ),
    *PARTITIONS(
        f"{TOPIC}/partitions", topics.PartitionsView, GET(SEE_TOPIC, answer=listed(PartitionData))
    ),
    *PARTITIONS(
        f"{TOPIC}/partitions/-/reassignment",
        topics.TopicReassignmentsView,
        GET(SEE_TOPIC, answer=listed(ReassignmentData)),
    ),
    *PARTITIONS(PARTITION, topics.PartitionView, GET(SEE_TOPIC, answer=PartitionData)),
    *PARTITIONS(
        f"{PARTITION}/offset",
        topics.OffsetsView,
        GET(SEE_TOPIC, query=("offset_type",), answer=PartitionWithOffsetsData),
    ),
    *PARTITIONS(
        f"{PARTITION}/reassignment",
        topics.ReassignmentView,
        GET(SEE_TOPIC, answer=ReassignmentData),
    ),
    *PARTITIONS(
        f"{PARTITION}/replicas", topics.ReplicasView, GET(SEE_TOPIC, answer=listed(ReplicaData))
    ),
    *PARTITIONS(
        f"{PARTITION}/replicas/{{broker_id}}",
        topics.ReplicaView,
        GET(SEE_TOPIC, answer=ReplicaData),
    ),
)
