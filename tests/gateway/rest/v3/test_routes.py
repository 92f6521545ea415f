"""Every address of version 3 that is asked, against the fields of the published interface."""

from typing import Any

import pytest

from tests.gateway.rest.asking import CLUSTER, Api
from tests.gateway.rest.v3.fields import allowed, required

pytestmark = pytest.mark.slow

PARTITION = "topics/orders/partitions/1"
M1 = "consumer-groups/billing/consumers/m-1"
ITEMS = {
    "topics/orders": "KafkaTopic",
    "topics/orders/configs/retention.ms": "KafkaTopicConfig",
    PARTITION: "KafkaPartition",
    f"{PARTITION}/offset": "KafkaPartitionWithOffsets",
    f"{PARTITION}/replicas/1": "KafkaReplica",
    "brokers/1": "KafkaBroker",
    "brokers/1/configs/log.retention.ms": "KafkaBrokerConfig",
    "consumer-groups/billing": "KafkaConsumerGroup",
    M1: "KafkaConsumer",
    f"{M1}/assignments/orders/partitions/1": "KafkaConsumerAssignment",
    "consumer-groups/billing/lag-summary": "KafkaConsumerGroupLagSummary",
    "consumer-groups/billing/lags/orders/partitions/0": "KafkaConsumerLag",
}
LISTS = {
    "topics": "KafkaTopic",
    "topics/-/configs": "KafkaTopicConfig",
    "topics/orders/configs": "KafkaTopicConfig",
    "topics/orders/partitions": "KafkaPartition",
    f"{PARTITION}/replicas": "KafkaReplica",
    "topics/-/partitions/-/reassignment": "KafkaReassignment",
    "topics/orders/partitions/-/reassignment": "KafkaReassignment",
    "brokers": "KafkaBroker",
    "brokers/-/configs": "KafkaBrokerConfig",
    "brokers/1/configs": "KafkaBrokerConfig",
    "brokers/1/partition-replicas": "KafkaReplica",
    "broker-configs": "KafkaClusterConfig",
    "consumer-groups": "KafkaConsumerGroup",
    "consumer-groups/billing/consumers": "KafkaConsumer",
    f"{M1}/assignments": "KafkaConsumerAssignment",
    "consumer-groups/billing/lags": "KafkaConsumerLag",
}
EMPTY = {"KafkaReassignment", "KafkaClusterConfig"}


def check_item(item: dict[str, Any], kind: str, base: str) -> None:
    assert item["kind"] == kind
    assert required(kind) <= set(item) <= allowed(kind)
    assert item["cluster_id"] == CLUSTER
    assert item["metadata"]["self"].startswith(f"{base}/clusters/{CLUSTER}")
    assert item["metadata"]["resource_name"].startswith(f"crn:///kafka={CLUSTER}")
    links = [value for value in item.values() if isinstance(value, dict) and "related" in value]
    assert all(link["related"].startswith(f"{base}/clusters/{CLUSTER}/") for link in links)


@pytest.mark.parametrize("prefix", ["/v3", "/kafka/v3"])
@pytest.mark.parametrize("address", ITEMS)
def test_an_item_has_the_fields_of_its_kind(api: Api, prefix: str, address: str) -> None:
    api.prefix = prefix
    base = f"http://testserver{prefix}"

    found = api.get(address)

    check_item(found, ITEMS[address], base)
    assert found["metadata"]["self"] == f"{base}/clusters/{CLUSTER}/{address}"


@pytest.mark.parametrize("address", LISTS)
def test_a_list_has_items_of_its_kind(api: Api, address: str) -> None:
    found = api.get(address)

    kind = LISTS[address]
    assert found["kind"] == f"{kind}List"
    assert found["metadata"] == {
        "self": f"http://testserver/v3/clusters/{CLUSTER}/{address}",
        "next": None,
    }
    assert bool(found["data"]) == (kind not in EMPTY)
    for item in found["data"]:
        check_item(item, kind, "http://testserver/v3")


def test_the_one_cluster_is_listed_and_shown(api: Api) -> None:
    [listed] = api.get("/clusters")["data"]

    check_item(listed, "KafkaCluster", "http://testserver/v3")
    assert api.get(f"/clusters/{CLUSTER}") == listed
    assert listed["controller"]["related"].endswith("/brokers/1")


def test_links_lead_where_they_say(api: Api) -> None:
    topic = api.get("topics/orders")

    for name in ("partitions", "configs", "partition_reassignments"):
        address = topic[name]["related"].removeprefix("http://testserver/v3")
        assert api.get(address)["metadata"]["self"] == topic[name]["related"]


def test_a_slash_at_the_end_changes_nothing(api: Api) -> None:
    assert api.get("topics/orders/") == api.get("topics/orders")


def test_a_name_with_a_slash_stays_one_name(api: Api) -> None:
    found = api.get("consumer-groups/a%2Fb")

    assert found["consumer_group_id"] == "a/b"
    assert found["metadata"]["self"].endswith("/consumer-groups/a%2Fb")
    assert found["metadata"]["resource_name"].endswith("consumer-group=a%2Fb")
