"""DeleteTopics: delete topics with all their records, by name or by id.
API 20, versions 1-6, flexible from 4.

Topics succeed or fail one by one.  Deleting by id never hits a topic that was recreated under the
same name.  The answer comes when the topics are no longer visible; files are deleted later.

Versions:
  1  throttle time; the oldest left by KIP-896
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  the client knows TOPIC_DELETION_DISABLED; below it is INVALID_REQUEST
  4  flexible (KIP-482)
  5  error_message; the client knows THROTTLING_QUOTA_EXCEEDED (KIP-599)
  6  topics by name or id (KIP-516)
"""

from brokers.protocol.schema import STRING, Message, array, int16, int32, string, uuid


class DeleteTopicState(Message):
    name: str | None = string(
        "Null where topic_id is given; both or neither is INVALID_REQUEST.",
        default=None,
        since=6,
        nullable=6,
    )
    topic_id: bytes = uuid(
        "All zero where name is given; UNKNOWN_TOPIC_ID if it does not exist.", since=6
    )


class DeleteTopicsRequest(Message, key=20, versions=(1, 6), flexible=4):
    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array(
        STRING,
        "Names only; UNKNOWN_TOPIC_OR_PARTITION if one does not exist.",
        until=5,
        ignorable=True,
    )
    timeout_ms: int = int32(
        "How long to wait until the topics have disappeared; the deletion continues after "
        "REQUEST_TIMED_OUT."
    )


class DeletableTopicResult(Message):
    name: str | None = string(
        "Null for an id that leads to no name, or to one the principal may not see.", nullable=6
    )
    topic_id: bytes = uuid(
        "All zero where the topic was named and is not known.", since=6, ignorable=True
    )
    error_code: int = int16(
        "UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, "
        "TOPIC_DELETION_DISABLED, REQUEST_TIMED_OUT, INVALID_REQUEST for a topic that is listed "
        "twice, POLICY_VIOLATION, NOT_CONTROLLER while the broker starts."
    )
    error_message: str | None = string(
        "For people; null on success or where the code says it all.",
        default=None,
        since=5,
        nullable=5,
        ignorable=True,
    )


class DeleteTopicsResponse(Message, key=20, versions=(1, 6), flexible=4):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
