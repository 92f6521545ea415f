"""Errors of the client, and the names of Kafka's error codes.

Each message says what is wrong and what to do next: Spark shows it to the user.
"""

from dataclasses import dataclass
from typing import Final


class WireError(Exception):
    """The brokers are unreachable, or refused a request."""


class Unreachable(WireError):
    """A connection failed or was closed; a retry may help."""


class WireCorrupt(WireError):
    """A response that violates the protocol."""


class Refused(WireError):
    """TLS or authentication failed; a retry does not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    name: str
    # Whether a retry may succeed, perhaps at another broker.
    is_passing: bool = False


CODES: Final = {
    -1: Code(name="UNKNOWN_SERVER_ERROR"),
    1: Code(name="OFFSET_OUT_OF_RANGE"),
    2: Code(name="CORRUPT_MESSAGE"),
    3: Code(name="UNKNOWN_TOPIC_OR_PARTITION", is_passing=True),
    5: Code(name="LEADER_NOT_AVAILABLE", is_passing=True),
    6: Code(name="NOT_LEADER_OR_FOLLOWER", is_passing=True),
    7: Code(name="REQUEST_TIMED_OUT", is_passing=True),
    8: Code(name="BROKER_NOT_AVAILABLE", is_passing=True),
    9: Code(name="REPLICA_NOT_AVAILABLE", is_passing=True),
    10: Code(name="MESSAGE_TOO_LARGE"),
    13: Code(name="NETWORK_EXCEPTION", is_passing=True),
    14: Code(name="COORDINATOR_LOAD_IN_PROGRESS", is_passing=True),
    15: Code(name="COORDINATOR_NOT_AVAILABLE", is_passing=True),
    16: Code(name="NOT_COORDINATOR", is_passing=True),
    17: Code(name="INVALID_TOPIC_EXCEPTION"),
    18: Code(name="RECORD_LIST_TOO_LARGE"),
    19: Code(name="NOT_ENOUGH_REPLICAS", is_passing=True),
    20: Code(name="NOT_ENOUGH_REPLICAS_AFTER_APPEND", is_passing=True),
    29: Code(name="TOPIC_AUTHORIZATION_FAILED"),
    31: Code(name="CLUSTER_AUTHORIZATION_FAILED"),
    32: Code(name="INVALID_TIMESTAMP"),
    33: Code(name="UNSUPPORTED_SASL_MECHANISM"),
    34: Code(name="ILLEGAL_SASL_STATE"),
    35: Code(name="UNSUPPORTED_VERSION"),
    36: Code(name="TOPIC_ALREADY_EXISTS"),
    37: Code(name="INVALID_PARTITIONS"),
    38: Code(name="INVALID_REPLICATION_FACTOR"),
    40: Code(name="INVALID_CONFIG"),
    41: Code(name="NOT_CONTROLLER", is_passing=True),
    42: Code(name="INVALID_REQUEST"),
    43: Code(name="UNSUPPORTED_FOR_MESSAGE_FORMAT"),
    44: Code(name="POLICY_VIOLATION"),
    45: Code(name="OUT_OF_ORDER_SEQUENCE_NUMBER"),
    46: Code(name="DUPLICATE_SEQUENCE_NUMBER"),
    47: Code(name="INVALID_PRODUCER_EPOCH"),
    53: Code(name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    56: Code(name="KAFKA_STORAGE_ERROR", is_passing=True),
    58: Code(name="SASL_AUTHENTICATION_FAILED"),
    59: Code(name="UNKNOWN_PRODUCER_ID"),
    74: Code(name="FENCED_LEADER_EPOCH", is_passing=True),
    75: Code(name="UNKNOWN_LEADER_EPOCH", is_passing=True),
    76: Code(name="UNSUPPORTED_COMPRESSION_TYPE"),
    78: Code(name="OFFSET_NOT_AVAILABLE", is_passing=True),
    87: Code(name="INVALID_RECORD"),
    89: Code(name="THROTTLING_QUOTA_EXCEEDED", is_passing=True),
    100: Code(name="UNKNOWN_TOPIC_ID", is_passing=True),
}
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
TOPIC_ALREADY_EXISTS: Final = 36
UNKNOWN_TOPIC_ID: Final = 100
# The errors for a topic that does not exist, or not yet.
UNKNOWN_TOPIC: Final = frozenset({UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID})


class BrokerError(WireError):
    """A broker answered with an error code."""

    def __init__(self, code: int, what: str, said: str | None = None) -> None:
        known = CODES.get(code, Code(name=f"error {code}"))
        super().__init__(f"{what}: {known.name}" + (f": {said}" if said else ""))
        self.code = code
        self.is_passing = known.is_passing


def check(code: int, what: str, said: str | None = None) -> None:
    """Raise the exception for an error code; 0 means no error."""
    if code:
        raise BrokerError(code, what, said)
