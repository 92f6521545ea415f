"""AlterConfigs: replace the whole configuration that was set on a resource.
API 33, versions 0-2, flexible from 2.

Keys that the request does not name go back to their defaults, which makes two writers lose each
other's work: IncrementalAlterConfigs is the better one, this stays for older clients.  Resources
succeed or fail one by one, the keys of one resource only together.

Versions:
  0  (KIP-133)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, array, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    name: str = string()
    value: str | None = string(
        "Null is INVALID_REQUEST: a key goes back to its default by being left out.", nullable=0
    )


class AlterConfigsResource(Message):
    resource_type: int = int8("Numbered as in DescribeConfigs.")
    resource_name: str = string("Empty with the type of brokers for the defaults of all brokers.")
    configs: list[AlterableConfig] = array(AlterableConfig, "The complete new set of keys.")


class AlterConfigsRequest(Message, key=33, versions=(0, 2), flexible=2):
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


class AlterConfigsResponse(Message, key=33, versions=(0, 2), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
