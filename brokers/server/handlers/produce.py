"""Produce: appends the batches of a request, and answers once they are as safe as requested.

Serves versions 3 to 11 and announces 0 to 11, since librdkafka compresses only if it sees 0.
Nothing here reads records; if a topic's rules require more inspection or recompression than one
turn of the event loop allows, the request continues in later ones. A response that must wait for
the high watermark leaves one object with the partitions it waits for, without a task or timer of
its own.

Transactions are not served yet. Requests that need them are refused with the one code that both the
Java client and librdkafka treat as fatal for the producer, and never as retriable.
"""

from collections.abc import Generator
from typing import Final

from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from brokers.protocol.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    Batch,
)
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.record_faults import RecordsRefused
from brokers.protocol.records.validation import NeedsRecompression, Unready, inspecting
from brokers.replication.partition import Partition
from brokers.replication.waits import WaitRoom
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.long_produce import (
    MAX_KEPT_BYTES,
    Awaited,
    LongProduce,
    OrderAtRisk,
    Steps,
)
from brokers.server.metrics import STALL_SECONDS
from brokers.server.readers import SLICE_SECONDS
from brokers.server.served_api import Served
from brokers.storage.log import Appended

SERVED = Served(key=0, versions=(3, 11), advertised=(0, 11), counts_errors=True)
API_NAME: Final = "Produce"

NO_ACKS: Final = 0

# The low byte of a batch's attributes, and the lowest value that needs a check before the append:
# zstd has the highest number of all codecs, and the flags are above it.
ATTRIBUTES_POSITION: Final = 22
FIRST_ATTRIBUTES_TO_CHECK: Final = Compression.ZSTD.value
_FIRST_WITH_STORAGE_ERROR: Final = 4
_FIRST_WITH_ZSTD: Final = 7
_FIRST_WITH_LEADERS: Final = 10

# A client's timeout is for replicas that lag, and Kafka with one replica never times out. Here the
# wait is for this broker's disk: a timeout of 0 would make a plain producer write twice.
LEAST_WAIT_MS: Final = 30_000

# Errors of the comparison of a batch with the log, records apart: with these Kafka returns the
# log's start, and -1 with all others.
_TELLS_LOG_START: Final = frozenset(
    {
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)

# The memory of a waiting response: for its request, a topic beside its name, a partition.
_REQUEST_BYTES: Final = 600
_TOPIC_BYTES: Final = 200
_PARTITION_BYTES: Final = 400

NO_TRANSACTIONS: Final = "transactions are not served by this release"


class PendingProduce:
    """A request whose answer waits for high watermarks. See `AppendWaiter` and `Expiring`."""

    __slots__ = (
        "_added",
        "_call",
        "_context",
        "_has_failed",
        "_is_over",
        "_open",
        "_response",
        "_size",
        "due_ms",
    )

    def __init__(self, context: Context, call: Call) -> None:
        self._context = context
        self._call = call
        self._added = 0
        # The responses that still wait, by unique slot: some may be reached before all are added.
        # Kept after the end, without a reader.
        self._open: dict[int, PartitionProduceResponse] = {}
        self._response: ProduceResponse | None = None
        self._is_over = False
        self._has_failed = False  # in some partition; counted once it is answered
        self._size = 0
        self.due_ms = 0.0

    def add(self, partition: Partition, offset: int, answer: PartitionProduceResponse) -> None:
        """Keep one partition's response waiting until its high watermark is at `offset`."""
        slot = self._added
        self._added += 1
        self._open[slot] = answer
        partition.wait_for(offset, self, slot)

    def begin(self, response: ProduceResponse, timeout_ms: int, *, has_failed: bool) -> None:
        """Begin to wait, with everything added."""
        self._has_failed = self._has_failed or has_failed
        self._response = response
        self._size = _held_bytes(response)
        self._context.replicas.room.append_bytes += self._size
        self._context.replicas.deadlines.add(self, max(timeout_ms, LEAST_WAIT_MS))
        self._call.when_closed(self._end)
        if not self._open:
            self._finish()  # all of it was reached while the request went on in later turns

    def reached(self, slot: int) -> None:
        del self._open[slot]
        # Without a response it was not begun, or the handler has failed after all.
        if not self._open and not self._is_over and self._response is not None:
            self._finish()

    def lost(self, slot: int, error: KafkaError) -> None:
        self._has_failed = True
        _refuse(self._open[slot], error, self._call.version)
        self.reached(slot)

    def expire(self) -> None:
        self._has_failed = True
        error = timed_out()
        for answer in self._open.values():
            _refuse(answer, error, self._call.version)
        self._finish()

    def _finish(self) -> None:
        response = self._response
        assert response is not None, "the answer was not begun"
        self._end()
        if self._has_failed:
            self._context.metrics.failed(API_NAME)
        _add_leaders(self._context, self._call.version, response)
        self._call.answer(response)

    def _end(self) -> None:
        self._is_over = True
        self._response = None
        self._context.replicas.room.append_bytes -= self._size
        self._context.replicas.deadlines.remove(self)


def handle(context: Context, call: Call, request: ProduceRequest) -> ProduceResponse | None:
    """Append everything in the order of the request; each partition succeeds or fails alone."""
    steps = _appending(context, call, request)
    try:
        next(steps)
    except StopIteration as end:
        answer: ProduceResponse | None = end.value
        return answer
    except OrderAtRisk as error:
        call.disconnect(str(error))
        return None
    LongProduce(context, call, steps).begin(request)
    return None


def _appending(context: Context, call: Call, request: ProduceRequest) -> Steps:
    """Do the work of `handle`, with a pause wherever a turn gets too long: the hottest path."""
    acks, version, clock = request.acks, call.version, context.clock.monotonic
    now_ms, began, spent = context.clock.now_ms(), clock(), 0.0
    leader, room = context.replicas.leader, context.replicas.room
    refused = _refusal(context, request)
    first_error: KafkaError | None = None
    pending: PendingProduce | None = None
    topics: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        name = topic.name
        wrong = _internal(name) if name in INTERNAL_TOPICS and refused is None else refused
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            if spent >= SLICE_SECONDS and (call.is_held or room.kept_bytes <= MAX_KEPT_BYTES):
                note_stall(context, spent)
                yield None
                now_ms, began = context.clock.now_ms(), clock()
            try:
                if wrong is not None:
                    raise wrong
                partition = leader(name, data.index)
                records = data.records
                if (
                    records is None
                    or len(records) < HEADER_SIZE
                    or records[ATTRIBUTES_POSITION] >= FIRST_ATTRIBUTES_TO_CHECK
                ):
                    records = _checked(records, version)
                if acks != NO_ACKS and partition.is_synced and room.is_full_of_appends:
                    raise _too_slow(room)
                try:
                    appended = partition.append(records, now_ms)
                except Unready as unready:
                    try:
                        appended = yield from _append_ready(context, call, partition, data, unready)
                    finally:
                        now_ms, began = context.clock.now_ms(), clock()
            except KafkaError as error:
                first_error = first_error or error
                answer = _refusal_of(context, version, name, data.index, error)
            else:
                answer = PartitionProduceResponse(
                    data.index,
                    ErrorCode.NONE,
                    appended.base_offset,
                    appended.log_append_time_ms,
                    partition.log.start_offset,
                )
                if acks != NO_ACKS and appended.last_offset >= partition.high_watermark:
                    if pending is None:
                        pending = PendingProduce(context, call)
                    pending.add(partition, appended.last_offset + 1, answer)
            answers.append(answer)
            data.records = None  # not kept for as long as the rest of the request
            spent = clock() - began
        topics.append(TopicProduceResponse(name=name, partition_responses=answers))
    note_stall(context, spent)
    if acks == NO_ACKS:
        _end_silently(context, call, first_error)
        return None
    response = ProduceResponse(responses=topics)
    if pending is not None:
        pending.begin(response, request.timeout_ms, has_failed=first_error is not None)
        return None
    if first_error is not None:
        context.metrics.failed(API_NAME)
        _add_leaders(context, version, response)
    return response


def _append_ready(
    context: Context,
    call: Call,
    partition: Partition,
    data: PartitionProduceData,
    unready: Unready,
) -> Generator[Awaited, None, Appended]:
    """Inspect or recompress a batch as the topic's rules require, and append it."""
    replicas, clock = context.replicas, context.clock
    if isinstance(unready, NeedsRecompression):
        assert data.records is not None, "no records were refused"
        small = replicas.recompressor.at_once(data.records, unready.rules)
        if small is not None:
            return partition.append(small, clock.now_ms(), unready.rules)
    if not call.is_held:
        kept = replicas.room.kept_bytes
        if kept > MAX_KEPT_BYTES:
            raise _no_room_for(data, kept)
        yield None  # from here on all records of the request are copies, which stay valid
    records = data.records
    assert records is not None, "no records were refused"
    while True:
        rules = unready.rules
        if isinstance(unready, NeedsRecompression):
            recompression = replicas.recompressor.begin(records, rules)
            yield recompression
            records = recompression.result()
        else:
            yield from replicas.inspections.through(inspecting(records, rules, clock.now_ms()))
        try:
            # Now, not the time of the request: times stamped by the broker grow with the offsets.
            return partition.append(records, clock.now_ms(), rules)
        except Unready as more:
            unready = more  # the next work, or the topic's rules have changed meanwhile


def _no_room_for(data: PartitionProduceData, kept_bytes: int) -> Exception:
    """Return the refusal of a batch that would have to be kept for work in later turns.

    A batch that is retried after a retriable error may come after a later one of its producer, and
    would be out of order from then on. After a closed connection the client sends all of them
    again, in order.
    """
    message = (
        f"{kept_bytes} bytes of batches wait to be inspected or recompressed, and the limit is "
        f"{MAX_KEPT_BYTES}; send the batch again later"
    )
    assert data.records is not None, "no records were refused"
    if Batch(data.records).has_producer:
        return OrderAtRisk(message)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)


def _refusal(context: Context, request: ProduceRequest) -> KafkaError | None:
    """Return the error of the request as a whole."""
    if not -1 <= request.acks <= 1:
        return KafkaError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, allowed are -1, 0 and 1"
        )
    if request.transactional_id is not None:
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONS)
    if not context.is_serving:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is starting and leads nothing yet"
        )
    return None


def _internal(name: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"{name} is internal: its records are the state of a coordinator, so clients may not "
        "write to it",
    )


def _checked(records: memoryview | None, version: int) -> memoryview:
    """Refuse batches with forbidden attributes; the log refuses buffers that are no batches."""
    if records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is no record batch for the partition")
    if len(records) < HEADER_SIZE or records[MAGIC_POSITION] != MAGIC:
        return records
    attributes = records[ATTRIBUTES_POSITION]
    if attributes & TRANSACTIONAL_FLAG:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONS)
    if version < _FIRST_WITH_ZSTD and attributes & COMPRESSION_MASK == Compression.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce version {_FIRST_WITH_ZSTD}, this is {version}",
        )
    return records


def _too_slow(room: WaitRoom) -> KafkaError:
    return KafkaError(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"the disk is too slow: {room.appends} batches wait for it already",
    )


def timed_out() -> KafkaError:
    """Return the error of a batch that is not safe in time."""
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        "the batch was appended but is not durable yet; it may become durable after this answer",
    )


def note_stall(context: Context, seconds: float) -> None:
    """Count appends that kept the loop for longer than STALL_SECONDS."""
    if seconds > STALL_SECONDS:
        context.metrics.append_stalls += 1
        context.metrics.append_stall_seconds += seconds


def refused_answer(
    context: Context, version: int, topic: str, index: int, error: KafkaError
) -> ProduceResponse:
    """Return the response to a request for one partition that was refused."""
    answer = _refusal_of(context, version, topic, index, error)
    response = ProduceResponse(
        responses=[TopicProduceResponse(name=topic, partition_responses=[answer])]
    )
    _add_leaders(context, version, response)
    return response


def _refusal_of(
    context: Context, version: int, topic: str, index: int, error: KafkaError
) -> PartitionProduceResponse:
    answer = _refuse(PartitionProduceResponse(index=index), error, version)
    has_faults = isinstance(error, RecordsRefused)
    if has_faults or error.code in _TELLS_LOG_START:
        partition = context.replicas.led((topic, index))
        if partition is not None:
            answer.log_start_offset = partition.log.start_offset
    if isinstance(error, RecordsRefused):
        answer.record_errors = [
            BatchIndexAndErrorMessage(
                batch_index=fault.index, batch_index_error_message=f"record {fault.message}"
            )
            for fault in error.faults
        ]
    return answer


def _refuse(
    answer: PartitionProduceResponse, error: KafkaError, version: int
) -> PartitionProduceResponse:
    code = error.code
    if code is ErrorCode.KAFKA_STORAGE_ERROR and version < _FIRST_WITH_STORAGE_ERROR:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer.error_code = code
    answer.error_message = error.message
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
    return answer


def _end_silently(context: Context, call: Call, error: KafkaError | None) -> None:
    """Close the connection, which is the only way to report an error with acks 0."""
    if error is None:
        call.skip()
    else:
        context.metrics.failed(API_NAME)
        call.disconnect(f"produce with acks=0 was refused: {error}")


def _add_leaders(context: Context, version: int, response: ProduceResponse) -> None:
    """Add the right leaders to errors, so that clients need not look them up (KIP-951)."""
    if version < _FIRST_WITH_LEADERS:
        return
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            found = context.replicas.leader_state(topic.name, answer.index)
            if found is None:
                continue
            state, broker = found
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=broker.id, leader_epoch=state.leader_epoch
            )
            endpoints[broker.id] = NodeEndpoint(
                node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack
            )
    response.node_endpoints = list(endpoints.values())


def _held_bytes(response: ProduceResponse) -> int:
    return _REQUEST_BYTES + sum(
        _TOPIC_BYTES + len(topic.name) + _PARTITION_BYTES * len(topic.partition_responses)
        for topic in response.responses
    )
