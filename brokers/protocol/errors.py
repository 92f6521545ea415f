"""Defines every protocol error: number, name, whether a client may retry, and a sentence.

The table is the single definition of an error; responses carry the number, people read the
sentence. Expected failures are raised as `KafkaError` and become a field of a response; malformed
bytes are raised as `DecodeError` and cost only their sender its connection or its request.
"""

from enum import IntEnum
from typing import Final, Self

RETRY: Final = True
FINAL: Final = False


class ErrorCode(IntEnum):
    """Kafka's error numbers. `retriable` tells whether client libraries retry by themselves."""

    retriable: bool
    sentence: str

    def __new__(cls, number: int, retriable: bool, sentence: str) -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.retriable = retriable
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = -1, FINAL, "The broker met a condition it has no name for."
    NONE = 0, FINAL, "No error."
    OFFSET_OUT_OF_RANGE = 1, FINAL, "The offset is outside of the partition's log."
    CORRUPT_MESSAGE = 2, RETRY, "A record batch fails its checksum, its size or its form."
    UNKNOWN_TOPIC_OR_PARTITION = 3, RETRY, "This broker does not know the topic or partition."
    INVALID_FETCH_SIZE = 4, FINAL, "The fetch size asked for is not usable."
    LEADER_NOT_AVAILABLE = 5, RETRY, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, RETRY, "This broker is no longer the replica to ask."
    REQUEST_TIMED_OUT = 7, RETRY, "The request was not finished within its time."
    BROKER_NOT_AVAILABLE = 8, FINAL, "The broker named is not available."
    REPLICA_NOT_AVAILABLE = 9, RETRY, "The replica asked for is not available."
    MESSAGE_TOO_LARGE = 10, FINAL, "A record batch is larger than the topic allows."
    STALE_CONTROLLER_EPOCH = 11, FINAL, "The controller has moved on to a newer epoch."
    OFFSET_METADATA_TOO_LARGE = 12, FINAL, "The metadata string of a commit is too long."
    NETWORK_EXCEPTION = 13, RETRY, "The server closed the connection before an answer arrived."
    COORDINATOR_LOAD_IN_PROGRESS = 14, RETRY, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, RETRY, "No coordinator is available yet."
    NOT_COORDINATOR = 16, RETRY, "This broker is not the coordinator for that id."
    INVALID_TOPIC_EXCEPTION = 17, FINAL, "The topic name is not a legal one."
    RECORD_LIST_TOO_LARGE = 18, FINAL, "The request holds more records than a segment can."
    NOT_ENOUGH_REPLICAS = 19, RETRY, "Fewer replicas are in sync than the topic demands."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, RETRY, "Written, but on fewer replicas than demanded."
    INVALID_REQUIRED_ACKS = 21, FINAL, "Acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, FINAL, "The generation of the group is not the current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, FINAL, "The members of the group share no protocol."
    INVALID_GROUP_ID = 24, FINAL, "The group id is not a legal one."
    UNKNOWN_MEMBER_ID = 25, FINAL, "The group does not know this member."
    INVALID_SESSION_TIMEOUT = 26, FINAL, "The session timeout is outside the allowed range."
    REBALANCE_IN_PROGRESS = 27, FINAL, "The group is rebalancing, so the member must rejoin."
    INVALID_COMMIT_OFFSET_SIZE = 28, FINAL, "The commit is too large to be stored."
    TOPIC_AUTHORIZATION_FAILED = 29, FINAL, "The principal may not do this with the topic."
    GROUP_AUTHORIZATION_FAILED = 30, FINAL, "The principal may not do this with the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, FINAL, "The principal may not do this with the cluster."
    INVALID_TIMESTAMP = 32, FINAL, "A record's timestamp is outside the allowed window."
    UNSUPPORTED_SASL_MECHANISM = 33, FINAL, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, FINAL, "The request does not fit the state of authentication."
    UNSUPPORTED_VERSION = 35, FINAL, "The broker does not speak this version of the request."
    TOPIC_ALREADY_EXISTS = 36, FINAL, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, FINAL, "The number of partitions is not a legal one."
    INVALID_REPLICATION_FACTOR = 38, FINAL, "The replication factor cannot be met."
    INVALID_REPLICA_ASSIGNMENT = 39, FINAL, "The assignment of replicas is not a legal one."
    INVALID_CONFIG = 40, FINAL, "A configuration name or value is not a legal one."
    NOT_CONTROLLER = 41, RETRY, "This broker is not the controller."
    INVALID_REQUEST = 42, FINAL, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, FINAL, "The record format on disk cannot do this."
    POLICY_VIOLATION = 44, FINAL, "The request breaks a policy of this cluster."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, FINAL, "A producer's sequence number leaves a gap."
    DUPLICATE_SEQUENCE_NUMBER = 46, FINAL, "A producer's sequence number was seen long ago."
    INVALID_PRODUCER_EPOCH = 47, FINAL, "A newer instance of this producer is at work."
    INVALID_TXN_STATE = 48, FINAL, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = 49, FINAL, "The producer id does not belong to this id."
    INVALID_TRANSACTION_TIMEOUT = 50, FINAL, "The transaction timeout is above the limit."
    CONCURRENT_TRANSACTIONS = 51, RETRY, "The previous transaction is still being finished."
    TRANSACTION_COORDINATOR_FENCED = 52, FINAL, "A newer transaction coordinator is at work."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, FINAL, "The principal may not use this id."
    SECURITY_DISABLED = 54, FINAL, "Access control is not switched on."
    OPERATION_NOT_ATTEMPTED = 55, FINAL, "Not tried, because an earlier part failed."
    KAFKA_STORAGE_ERROR = 56, RETRY, "The disk under the partition has failed or is full."
    LOG_DIR_NOT_FOUND = 57, FINAL, "The broker has no log dir of this name."
    SASL_AUTHENTICATION_FAILED = 58, FINAL, "The credentials were not accepted."
    UNKNOWN_PRODUCER_ID = 59, FINAL, "Nothing is left in the log from this producer."
    REASSIGNMENT_IN_PROGRESS = 60, FINAL, "The partition is being reassigned already."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, FINAL, "Delegation tokens are not switched on."
    DELEGATION_TOKEN_NOT_FOUND = 62, FINAL, "No such delegation token is known."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, FINAL, "The token belongs to another principal."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, FINAL, "Not allowed over this connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, FINAL, "The principal may not use the token."
    DELEGATION_TOKEN_EXPIRED = 66, FINAL, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, FINAL, "The type of the principal is not supported."
    NON_EMPTY_GROUP = 68, FINAL, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, FINAL, "No group of this id exists."
    FETCH_SESSION_ID_NOT_FOUND = 70, RETRY, "The fetch session is no longer known."
    INVALID_FETCH_SESSION_EPOCH = 71, RETRY, "The fetch session has another epoch."
    LISTENER_NOT_FOUND = 72, RETRY, "The leader has no listener of the client's kind."
    TOPIC_DELETION_DISABLED = 73, FINAL, "Deleting topics is switched off."
    FENCED_LEADER_EPOCH = 74, RETRY, "The client's leader epoch is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, RETRY, "The client's leader epoch is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, FINAL, "The version cannot carry this compression."
    STALE_BROKER_EPOCH = 77, FINAL, "The broker has registered again since."
    OFFSET_NOT_AVAILABLE = 78, RETRY, "A new leader does not know its watermark yet."
    MEMBER_ID_REQUIRED = 79, FINAL, "Join again with the member id given in the answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, RETRY, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, FINAL, "The group has as many members as it may."
    FENCED_INSTANCE_ID = 82, FINAL, "Another member took over this static instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, RETRY, "No replica that may lead is available."
    ELECTION_NOT_NEEDED = 84, RETRY, "The leader is already the right one."
    NO_REASSIGNMENT_IN_PROGRESS = 85, FINAL, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, FINAL, "The group still consumes the topic."
    INVALID_RECORD = 87, FINAL, "A record was refused by the broker."
    UNSTABLE_OFFSET_COMMIT = 88, RETRY, "A transaction still holds the committed offset."
    THROTTLING_QUOTA_EXCEEDED = 89, RETRY, "The quota for such changes is used up."
    PRODUCER_FENCED = 90, FINAL, "A newer producer took over the transactional id."
    RESOURCE_NOT_FOUND = 91, FINAL, "The resource asked for does not exist."
    DUPLICATE_RESOURCE = 92, FINAL, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, FINAL, "The credential does not meet the rules."
    INCONSISTENT_VOTER_SET = 94, FINAL, "The two sides know different voters."
    INVALID_UPDATE_VERSION = 95, FINAL, "Another change came first."
    FEATURE_UPDATE_FAILED = 96, FINAL, "The feature could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, FINAL, "A forwarded principal is not readable."
    SNAPSHOT_NOT_FOUND = 98, FINAL, "The snapshot asked for does not exist."
    POSITION_OUT_OF_RANGE = 99, FINAL, "The position is outside of the snapshot."
    UNKNOWN_TOPIC_ID = 100, RETRY, "This broker does not know the topic id."
    DUPLICATE_BROKER_REGISTRATION = 101, FINAL, "A living broker holds this id already."
    BROKER_ID_NOT_REGISTERED = 102, FINAL, "No broker of this id is registered."
    INCONSISTENT_TOPIC_ID = 103, RETRY, "The topic id does not fit the log on disk."
    INCONSISTENT_CLUSTER_ID = 104, FINAL, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, FINAL, "No such transactional id is known."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, RETRY, "A fetch session mixes topic ids and names."
    INELIGIBLE_REPLICA = 107, FINAL, "A replica proposed for the in-sync set may not join."
    NEW_LEADER_ELECTED = 108, FINAL, "The change led to a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, FINAL, "The offset is in tiered storage only."
    FENCED_MEMBER_EPOCH = 110, FINAL, "The member's epoch is not the current one."
    UNRELEASED_INSTANCE_ID = 111, FINAL, "A living member still holds the instance id."
    UNSUPPORTED_ASSIGNOR = 112, FINAL, "The group has no assignor of this name."
    STALE_MEMBER_EPOCH = 113, FINAL, "The member must learn its new epoch first."
    MISMATCHED_ENDPOINT_TYPE = 114, FINAL, "The request was sent to the wrong kind of node."
    UNSUPPORTED_ENDPOINT_TYPE = 115, FINAL, "This kind of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, FINAL, "The controller id is not known."
    UNKNOWN_SUBSCRIPTION_ID = 117, FINAL, "The telemetry subscription has changed."
    TELEMETRY_TOO_LARGE = 118, FINAL, "The telemetry pushed is larger than allowed."
    INVALID_REGISTRATION = 119, FINAL, "The registration of the controller is not valid."
    TRANSACTION_ABORTABLE = 120, FINAL, "The transaction must be aborted to continue."
    INVALID_RECORD_STATE = 121, FINAL, "The record is not in a state that allows this."
    SHARE_SESSION_NOT_FOUND = 122, RETRY, "The share session is no longer known."
    INVALID_SHARE_SESSION_EPOCH = 123, RETRY, "The share session has another epoch."
    FENCED_STATE_EPOCH = 124, FINAL, "The share state has a newer epoch."
    INVALID_VOTER_KEY = 125, FINAL, "The voter key does not fit the receiver."
    DUPLICATE_VOTER = 126, FINAL, "The voter belongs to the set already."
    VOTER_NOT_FOUND = 127, FINAL, "The voter does not belong to the set."
    INVALID_REGULAR_EXPRESSION = 128, FINAL, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, FINAL, "The client must learn the cluster from the start."
    STREAMS_INVALID_TOPOLOGY = 130, FINAL, "The topology of the streams group is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, FINAL, "The topology epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, FINAL, "The topology epoch is older than the group's."
    SHARE_SESSION_LIMIT_REACHED = 133, RETRY, "No further share session can be held."


class KafkaError(Exception):
    """An expected failure: it becomes a field of a response and is never logged as a fault."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class ProtocolError(Exception):
    """Bytes or values that violate the protocol; the message names the value."""


class DecodeError(ProtocolError):
    """Malformed bytes of a message: cut short, wrong lengths, bad UTF-8, trailing bytes."""


class LeftOver(DecodeError):
    """A message is complete, and `count` more bytes follow it."""

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message)
        self.count = count


class EncodeError(ProtocolError):
    """A value that the chosen version of a message cannot carry."""
