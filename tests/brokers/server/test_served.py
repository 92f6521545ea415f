"""What this broker serves and announces: a contract with every client that has ever asked."""

from brokers.protocol.apis import APIS
from brokers.server.served import HANDLERS

# API → the versions announced. A range never shrinks, and nothing is announced that is not here.
ANNOUNCED = {
    "Produce": (0, 11),
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 5),
    "CreatePartitions": (0, 3),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeCluster": (0, 2),
    "DescribeProducers": (0, 0),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "DeleteGroups": (0, 2),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "OffsetDelete": (0, 0),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "ElectLeaders": (0, 2),
    "ListPartitionReassignments": (0, 0),
    "DescribeClientQuotas": (0, 1),
    "DescribeUserScramCredentials": (0, 0),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
}


def test_each_api_is_served_in_its_whole_range_and_nothing_else_is() -> None:
    announced = {api.name: api.advertised for api in (module.SERVED.api() for module in HANDLERS)}

    assert announced == ANNOUNCED


def test_only_produce_announces_more_than_it_serves() -> None:
    served = [module.SERVED.api() for module in HANDLERS]

    assert [api.name for api in served if api.advertised != api.versions] == ["Produce"]
    assert APIS[0].versions == (3, 13)
