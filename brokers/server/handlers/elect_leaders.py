"""ElectLeaders: reports for each partition whether an election is needed, and why there is none.

Never elects a leader. A partition has one replica in this release, which leads it whenever its
broker is up; so either the leader is the preferred one, or no other replica could lead.
"""

from collections.abc import Iterable
from typing import Final

from brokers.cluster.image import NO_LEADER, ClusterImage, Topic
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED: Final = Served(key=43)

# Partitions that one request may name: each is answered with a sentence. Null asks for all.
MAX_NAMED: Final = 20_000
_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_TOP_ERROR_SINCE: Final = 1
_NOT_NEEDED: Final = ErrorCode.ELECTION_NOT_NEEDED


async def handle(
    context: Context, call: Call, request: ElectLeadersRequest
) -> ElectLeadersResponse | None:
    named = sum(1 + len(each.partitions) for each in request.topic_partitions or ())
    if named > MAX_NAMED:
        call.disconnect(f"{named} topics and partitions in one request, {MAX_NAMED} are allowed")
        return None
    slices, image = Slices(context.clock), context.image
    is_preferred = request.election_type == _PREFERRED
    if not (is_preferred or request.election_type == _UNCLEAN):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not context.is_serving and call.version >= _TOP_ERROR_SINCE:
        # Its image may be empty, and topics must not be reported as unknown.
        return ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER)
    found = []
    for name, indexes in _asked(image, request):
        results = []
        for index in indexes:
            result = _result(image, name, index, is_preferred=is_preferred)
            # For a request of all partitions, only return those that need an election.
            if request.topic_partitions is not None or result.error_code != _NOT_NEEDED:
                results.append(result)
            await slices.breathe()
        found.append(ReplicaElectionResult(topic=name, partition_result=results))
        await slices.breathe()
    return ElectLeadersResponse(replica_election_results=found)


def _asked(
    image: ClusterImage, request: ElectLeadersRequest
) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topic_partitions is None:
        return ((name, range(len(topic.partitions))) for name, topic in image.topics.items())
    return ((each.topic, each.partitions) for each in request.topic_partitions)


def _result(image: ClusterImage, name: str, index: int, *, is_preferred: bool) -> PartitionResult:
    topic = image.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        what = "topic" if topic is None else "partition"
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no such {what}"
    else:
        code, message = _verdict(topic, index, is_preferred=is_preferred)
    return PartitionResult(
        partition_id=index, error_code=code, error_message=f"{name[:249]}-{index}: {message}"
    )


def _verdict(topic: Topic, index: int, *, is_preferred: bool) -> tuple[ErrorCode, str]:
    state = topic.partitions[index]
    preferred = state.replicas[0]
    if state.leader == preferred or (state.leader != NO_LEADER and not is_preferred):
        return _NOT_NEEDED, f"broker {state.leader} leads it already"
    if is_preferred:
        return (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"its preferred leader, broker {preferred}, is away; start that broker",
        )
    return (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        f"none of its replicas {list(state.replicas)} is running; start one of these brokers",
    )
