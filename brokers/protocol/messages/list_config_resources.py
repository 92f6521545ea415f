"""ListConfigResources: list the resources that have configuration of their own.
API 74, versions 0-1, flexible from 0.

Versions:
  0  client metrics subscriptions only, under the name of ListClientMetricsResources (KIP-714)
  1  all types (KIP-1142)
"""

from brokers.protocol.schema import INT8, Message, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, key=74, versions=(0, 1), flexible=0):
    resource_types: list[int] = array(
        INT8,
        "Types wanted, numbered as in DescribeConfigs, an unknown one being UNSUPPORTED_VERSION; "
        "empty for all.",
        since=1,
    )


class ConfigResource(Message):
    resource_name: str = string()
    resource_type: int = int8(
        "Numbered as in DescribeConfigs; version 0 implies 16, client metrics.",
        default=16,
        since=1,
        ignorable=True,
    )


class ListConfigResourcesResponse(Message, key=74, versions=(0, 1), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(
        "CLUSTER_AUTHORIZATION_FAILED without the right to describe configurations."
    )
    config_resources: list[ConfigResource] = array(ConfigResource)
