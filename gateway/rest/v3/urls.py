"""Lists the URLs of version 3 views, below its prefix; `mounts` has those of streams."""

from typing import Final

from django.urls import URLPattern, path

from gateway.rest.openapi.served import FILE, serve
from gateway.rest.v3 import acls, clusters, configs, groups, topics
from gateway.rest.views import at

C: Final = "clusters/{cluster_id}"
TOPIC: Final = f"{C}/topics/{{topic_name}}"
PARTITION: Final = f"{TOPIC}/partitions/{{partition_id}}"
BROKER: Final = f"{C}/brokers/{{broker_id}}"
GROUP: Final = f"{C}/consumer-groups/{{consumer_group_id}}"
CONSUMER: Final = f"{GROUP}/consumers/{{consumer_id}}"
SPOT: Final = "{topic_name}/partitions/{partition_id}"

# Fixed words come before names in the same place.
urlpatterns: list[URLPattern] = [
    path(FILE, serve),
    at("clusters", clusters.ClustersView),
    at(C, clusters.ClusterView),
    at(f"{C}/acls:batch", acls.AclBatchView),
    at(f"{C}/acls", acls.AclsView),
    at(f"{C}/broker-configs", configs.ClusterConfigsView),
    at(f"{C}/broker-configs:alter", configs.AlterClusterConfigsView),
    at(f"{C}/broker-configs/{{name}}", configs.ClusterConfigView),
    at(f"{C}/brokers", clusters.BrokersView),
    at(f"{C}/brokers/-/configs", configs.AllBrokerConfigsView),
    at(BROKER, clusters.BrokerView),
    at(f"{BROKER}/configs", configs.BrokerConfigsView),
    at(f"{BROKER}/configs:alter", configs.AlterBrokerConfigsView),
    at(f"{BROKER}/configs/{{name}}", configs.BrokerConfigView),
    at(f"{BROKER}/partition-replicas", clusters.BrokerReplicasView),
    at(f"{C}/consumer-groups", groups.ConsumerGroupsView),
    at(GROUP, groups.ConsumerGroupView),
    at(f"{GROUP}/consumers", groups.ConsumersView),
    at(f"{GROUP}/lag-summary", groups.LagSummaryView),
    at(f"{GROUP}/lags", groups.LagsView),
    at(f"{GROUP}/lags/{SPOT}", groups.LagView),
    at(CONSUMER, groups.ConsumerView),
    at(f"{CONSUMER}/assignments", groups.AssignmentsView),
    at(f"{CONSUMER}/assignments/{SPOT}", groups.AssignmentView),
    at(f"{C}/topics", topics.TopicsView),
    at(f"{C}/topics/-/configs", configs.AllTopicConfigsView),
    at(f"{C}/topics/-/configs:alter", configs.AlterAllTopicConfigsView),
    at(f"{C}/topics/-/partitions/-/reassignment", topics.AllReassignmentsView),
    at(TOPIC, topics.TopicView),
    at(f"{TOPIC}/configs", configs.TopicConfigsView),
    at(f"{TOPIC}/configs:alter", configs.AlterTopicConfigsView),
    at(f"{TOPIC}/configs/{{name}}", configs.TopicConfigView),
    at(f"{TOPIC}/partitions", topics.PartitionsView),
    at(f"{TOPIC}/partitions/-/reassignment", topics.TopicReassignmentsView),
    at(PARTITION, topics.PartitionView),
    at(f"{PARTITION}/offset", topics.OffsetsView),
    at(f"{PARTITION}/reassignment", topics.ReassignmentView),
    at(f"{PARTITION}/replicas", topics.ReplicasView),
    at(f"{PARTITION}/replicas/{{broker_id}}", topics.ReplicaView),
]
