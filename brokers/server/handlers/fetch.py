"""Fetch: reads record batches for consumers, and waits if there are too few.

A response leaves when enough bytes are there, when some change must be reported at once, or when
the time is over. Until then one object watches the partitions; it is notified of added bytes and
reads again only once they could be enough. While it waits it holds no file. If there is no room for
it, it watches nothing and reads again when its time is over: an immediate response would make all
consumers retry without a pause.

There are no followers yet: a request with a replica id is refused.
"""

from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from brokers.replication.partition import Partition
from brokers.replication.waits import MAX_FETCH_WAIT_MS
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.fetch_reads import FIRST_WITH_IDS, Reading, read, refusal
from brokers.server.fetch_sessions import NO_SESSION, FetchPlan, Interest
from brokers.server.served_api import Served

SERVED = Served(key=1, counts_errors=True)
API_NAME: Final = "Fetch"

# Kafka's fetch.max.bytes: the limit of one response, whatever the client requests.
MAX_FETCH_BYTES: Final = 55 * 1024 * 1024

_FIRST_WITH_LEADERS: Final = 12
_FIRST_WITH_ENDPOINTS: Final = 16
_MISLED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class PendingFetch:
    """A fetch that waits for data. See `Watcher` and `Expiring`."""

    __slots__ = (
        "_call",
        "_context",
        "_is_looking",
        "_is_over",
        "_is_watching",
        "_missing",
        "_plan",
        "_request",
        "_watched",
        "due_ms",
    )

    def __init__(
        self, context: Context, call: Call, request: FetchRequest, plan: FetchPlan
    ) -> None:
        self._context = context
        self._call = call
        self._request = request
        self._plan = plan
        self._watched: list[Partition] = []
        self._missing = 0  # bytes that must be added before the next read
        self._is_looking = False  # a read is scheduled
        self._is_over = False
        self._is_watching = False
        self.due_ms = 0.0

    def begin(self, found: Reading, least: int) -> None:
        """Begin to wait."""
        replicas, call = self._context.replicas, self._call
        self._is_watching = replicas.room.admit_fetch(found.watched, call.connection)
        if self._is_watching:
            self._watched = found.watched
            self._missing = least - found.size
            for partition in found.watched:
                partition.watchers[self] = None
        else:
            replicas.room.unwatched[self] = None
            # Otherwise thousands could wait on each connection; later requests must wait anyway.
            call.hold()
        replicas.deadlines.add(self, min(self._request.max_wait_ms, MAX_FETCH_WAIT_MS))
        call.when_closed(self._end)

    def grew(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.changed()

    def changed(self) -> None:
        # At the end of the loop's turn, with all that it adds to all the partitions.
        if not self._is_looking:
            self._is_looking = True
            self._context.loop.call_soon(self._look)

    def expire(self) -> None:
        """Answer now, with the records that are there."""
        self._answer(_read(self._context, self._call, self._request, self._plan))

    def _look(self) -> None:
        self._is_looking = False
        if self._is_over:
            return
        found = _read(self._context, self._call, self._request, self._plan)
        least = min_bytes(self._request)
        if found.size >= least or found.is_hurried:
            self._answer(found)
        else:
            found.release()
            self._missing = least - found.size

    def _answer(self, found: Reading) -> None:
        self._end()
        self._call.answer(_response(self._context, self._call, self._plan, found))

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        replicas, call = self._context.replicas, self._call
        replicas.deadlines.remove(self)
        if self._is_watching:
            for partition in self._watched:
                partition.watchers.pop(self, None)
            replicas.room.dismiss_fetch(self._watched, call.connection)
        else:
            del replicas.room.unwatched[self]
            call.let_go()


def handle(context: Context, call: Call, request: FetchRequest) -> FetchResponse | None:
    """Answer at once if possible, or else create an object that answers later."""
    try:
        plan = context.fetch_sessions.plan(request, speaks_of_ids=call.version >= FIRST_WITH_IDS)
    except KafkaError as error:
        context.metrics.failed(API_NAME)
        return FetchResponse(error_code=error.code)
    refused = _refused(context, request)
    if refused is not None:
        found = Reading()
        found.data = [
            refusal(interest.wanted.partition, refused, call.version) for interest in plan.interests
        ]
        return _response(context, call, plan, found)
    found = _read(context, call, request, plan)
    least = min_bytes(request)
    if found.size >= least or found.is_hurried or not found.watched or request.max_wait_ms <= 0:
        return _response(context, call, plan, found)
    PendingFetch(context, call, request, plan).begin(found, least)
    found.release()
    return None


def _refused(context: Context, request: FetchRequest) -> ErrorCode | None:
    """Return the response of every partition if the request as a whole cannot be served."""
    if request.replica_id >= 0 or (
        request.replica_state is not None and request.replica_state.replica_id >= 0
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None if context.is_serving else ErrorCode.NOT_LEADER_OR_FOLLOWER


def min_bytes(request: FetchRequest) -> int:
    """Return how many bytes of records are enough for a response before its time is over."""
    return min(request.min_bytes, request.max_bytes, MAX_FETCH_BYTES)


def _read(context: Context, call: Call, request: FetchRequest, plan: FetchPlan) -> Reading:
    return read(
        context.replicas,
        plan.interests,
        version=call.version,
        max_bytes=min(request.max_bytes, MAX_FETCH_BYTES),
        isolation_level=request.isolation_level,
        is_going=plan.session is not None,
    )


def _response(context: Context, call: Call, plan: FetchPlan, found: Reading) -> FetchResponse:
    """Build the response, by topic in reading order; in an existing session only with news."""
    response = FetchResponse()
    session = plan.session
    if session is not None:
        response.session_id = session.id
    elif plan.can_open:
        response.session_id = context.fetch_sessions.open(
            plan.interests, speaks_of_ids=call.version >= FIRST_WITH_IDS
        )
    for partition, size in found.sent:
        partition.sent_bytes += size
    remembers = response.session_id != NO_SESSION
    has_failed = False
    endpoints: dict[int, NodeEndpoint] = {}
    topics = response.responses
    name: str | bytes | None = None
    for interest, data in zip(plan.interests, found.data, strict=True):
        if data is None or (session is not None and not interest.has_news(data)):
            continue
        if remembers:
            interest.told(data)
            if session is not None and data.records:
                session.served(interest)
        if data.error_code:
            has_failed = True
            if data.error_code in _MISLED and call.version >= _FIRST_WITH_LEADERS:
                _add_leader(context, interest, data, endpoints)
        if interest.name != name:
            name = interest.name
            topics.append(_topic(name))
        topics[-1].partitions.append(data)
    if has_failed:
        context.metrics.failed(API_NAME)
    if call.version >= _FIRST_WITH_ENDPOINTS:
        response.node_endpoints = list(endpoints.values())
    return response


def _topic(name: str | bytes) -> FetchableTopicResponse:
    if isinstance(name, str):
        return FetchableTopicResponse(topic=name)
    return FetchableTopicResponse(topic_id=name)


def _add_leader(
    context: Context, interest: Interest, data: PartitionData, endpoints: dict[int, NodeEndpoint]
) -> None:
    """Add the right leader to errors, so that clients need not look it up (KIP-951)."""
    name = interest.name
    topic = context.image.names.get(name) if isinstance(name, bytes) else name
    found = None if topic is None else context.replicas.leader_state(topic, data.partition_index)
    if found is None:
        return
    state, broker = found
    data.current_leader = LeaderIdAndEpoch(leader_id=broker.id, leader_epoch=state.leader_epoch)
    endpoints[broker.id] = NodeEndpoint(
        node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack
    )
