"""IncrementalAlterConfigs: change single configuration keys and leave the others alone.
API 44, versions 0-1, flexible from 1.

Resources succeed or fail one by one, the keys of one resource only together: one bad key refuses
them all.

Versions:
  0  (KIP-339)
  1  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, array, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    name: str = string()
    config_operation: int = int8(
        "0 set, 1 back to the default, 2 append to a list, 3 remove from a list; 2 and 3 on other "
        "types are INVALID_CONFIG."
    )
    value: str | None = string(
        "Null only with operation 1, else INVALID_REQUEST; lists have commas between items.",
        nullable=0,
    )


class AlterConfigsResource(Message):
    resource_type: int = int8("Numbered as in DescribeConfigs.")
    resource_name: str = string("Empty with the type of brokers for the defaults of all brokers.")
    configs: list[AlterableConfig] = array(
        AlterableConfig, "The changed configs only; a key that is listed twice is INVALID_REQUEST."
    )


class IncrementalAlterConfigsRequest(Message, key=44, versions=(0, 1), flexible=1):
    resources: list[AlterConfigsResource] = array(
        AlterConfigsResource, "A resource that is listed twice is INVALID_REQUEST."
    )
    validate_only: bool = boolean("Check everything and answer as if done, but change nothing.")


class AlterConfigsResourceResponse(Message):
    error_code: int = int16(
        "INVALID_CONFIG for an unknown key or a value that is not allowed, INVALID_REQUEST for "
        "what contradicts itself or is meant for another broker, UNKNOWN_TOPIC_OR_PARTITION, "
        "REQUEST_TIMED_OUT, NOT_CONTROLLER while the broker starts."
    )
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    resource_type: int = int8("As in the request.")
    resource_name: str = string("As in the request.")


class IncrementalAlterConfigsResponse(Message, key=44, versions=(0, 1), flexible=1):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
