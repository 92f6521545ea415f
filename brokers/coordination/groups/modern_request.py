"""Checks a consumer group heartbeat as far as possible without its group.

Reads the request only; the order of the checks is Kafka's, since the first failure is returned.
"""

from typing import Final

from brokers.coordination.groups.assignors import ASSIGNORS
from brokers.coordination.groups.modern import JOINS, LEAVES, LEAVES_FOR_A_WHILE
from brokers.coordination.groups.settings import MAX_ID_BYTES, MAX_SUBSCRIBED_TOPICS
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# From this version on clients make up their own id.
_OWN_ID_VERSION: Final = 1


def check(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Raise KafkaError for a request that is invalid in any group."""
    epoch = request.member_epoch
    if version >= _OWN_ID_VERSION or epoch > JOINS or epoch == LEAVES:
        _check_filled("MemberId", request.member_id)
    _check_filled("GroupId", request.group_id)
    _check_filled("InstanceId", request.instance_id)
    _check_filled("RackId", request.rack_id)
    if epoch == JOINS:
        _check_join(request)
    elif epoch == LEAVES_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVES_FOR_A_WHILE:
        raise _invalid(f"MemberEpoch is invalid: {epoch} is below {LEAVES_FOR_A_WHILE}.")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(ASSIGNORS)}.",
        )
    if (count := len(request.subscribed_topic_names or ())) > MAX_SUBSCRIBED_TOPICS:
        raise _invalid(f"{count} topics are subscribed to, {MAX_SUBSCRIBED_TOPICS} are allowed.")


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null.")


def _check_filled(name: str, value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        raise _invalid(f"{name} can't be empty.")
    if (size := len(value.encode("utf-8", "surrogatepass"))) > MAX_ID_BYTES:
        raise _invalid(f"{name} has {size} bytes, {MAX_ID_BYTES} are allowed.")


def _invalid(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, sentence)
