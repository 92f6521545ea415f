"""An error code is found wherever it stands in an answer."""

from brokers.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from brokers.protocol.messages.heartbeat import HeartbeatResponse
from brokers.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from brokers.protocol.schema import Message
from brokers.server.answer_errors import error_check


class Silent(Message):
    """A message that has no room for an error."""


def found(message: Message) -> bool:
    check = error_check(type(message))
    assert check is not None
    return bool(check(message))


def test_a_code_of_the_whole_answer_is_an_error() -> None:
    assert not found(HeartbeatResponse())
    assert found(HeartbeatResponse(error_code=27))


def test_a_code_deep_inside_is_an_error() -> None:
    def answer(*codes: int) -> OffsetCommitResponse:
        partitions = [OffsetCommitResponsePartition(error_code=code) for code in codes]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=partitions)])

    assert not found(answer())
    assert not found(answer(0, 0))
    assert found(answer(0, 3))
    assert found(DeleteTopicsResponse(responses=[DeletableTopicResult(error_code=3)]))


def test_an_answer_without_room_for_a_code_needs_no_look() -> None:
    assert error_check(Silent) is None
