"""DescribeConfigs: show the configuration of topics, brokers and other resources.
API 32, versions 1-4, flexible from 4.

A value is looked for from the closest source to the farthest, and the answer says which one had
it.  Resource types are 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.  A
broker's own values are known only at that broker, so the request goes to it; the empty broker name
means the defaults of all brokers that were set at run time.

Versions:
  1  sources and synonyms (KIP-226); the oldest left by KIP-896
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  types and documentation (KIP-569)
  4  flexible (KIP-482)
"""

from brokers.protocol.schema import STRING, Message, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Message):
    resource_type: int = int8(
        "2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group; any other is "
        "INVALID_REQUEST."
    )
    resource_name: str = string(
        "Topic, broker id, or name of the resource; empty with type 4 for the defaults of all "
        "brokers."
    )
    configuration_keys: list[str] | None = array(
        STRING,
        "Null or empty for all keys; keys that do not exist are left out of the answer.",
        nullable=0,
    )


class DescribeConfigsRequest(Message, key=32, versions=(1, 4), flexible=4):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("Whether to fill in synonyms.")
    include_documentation: bool = boolean("Whether to fill in documentation.", since=3)


class DescribeConfigsSynonym(Message):
    name: str = string("The key as its source calls it: log.retention.ms for retention.ms.")
    value: str | None = string("Null if sensitive or without a value.", nullable=0)
    source: int = int8("Numbered as config_source.")


class DescribeConfigsResourceResult(Message):
    name: str = string()
    value: str | None = string("Null if sensitive or without a value.", nullable=0)
    read_only: bool = boolean("Whether the value cannot be changed at run time.")
    config_source: int = int8(
        "1 topic, 2 this broker at run time, 3 all brokers at run time, 4 start of the broker, 5 "
        "default, 6 broker logger, 7 client metrics, 8 group; 0 not known.",
        default=-1,
    )
    is_sensitive: bool = boolean("True for secrets, whose value is null.")
    synonyms: list[DescribeConfigsSynonym] = array(
        DescribeConfigsSynonym,
        "Every source that has a value, the winning one first; empty if not asked for.",
    )
    config_type: int = int8(
        "1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0 "
        "not known.",
        since=3,
        ignorable=True,
    )
    documentation: str | None = string(
        "The documentation of the key; null unless requested.", since=3, nullable=0, ignorable=True
    )


class DescribeConfigsResult(Message):
    error_code: int = int16(
        "UNKNOWN_TOPIC_OR_PARTITION for a topic that is not there, INVALID_TOPIC_EXCEPTION for a "
        "name that none can have, INVALID_REQUEST for a broker that is not this one."
    )
    error_message: str | None = string(
        "For people; empty on success, as Kafka has it; null is legal too.", nullable=0
    )
    resource_type: int = int8("As in the request.")
    resource_name: str = string("As in the request.")
    configs: list[DescribeConfigsResourceResult] = array(
        DescribeConfigsResourceResult, "Empty on error."
    )


class DescribeConfigsResponse(Message, key=32, versions=(1, 4), flexible=4):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
