"""Serves produce requests with one batch for one partition, as librdkafka always sends.

The response leaves at once if the batch is safe as soon as it is appended, and otherwise when the
high watermark has passed it.
"""

from struct import Struct
from typing import Any, ClassVar, Final

from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.protocol.apis import Api
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode, KafkaError, ProtocolError
from brokers.protocol.headers import read_request, response_head
from brokers.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from brokers.protocol.primitives import read_uvarint
from brokers.protocol.records.batch import HEADER_SIZE
from brokers.protocol.records.validation import Unready
from brokers.server.context import Context
from brokers.server.express.late import LateAnswer
from brokers.server.express.templates import (
    CLIENT_ID_LOW,
    HEAD_START,
    MARKS,
    MAX_HEAD_BYTES,
    OFFSETS,
    Templates,
)
from brokers.server.handlers.produce import (
    API_NAME,
    ATTRIBUTES_POSITION,
    FIRST_ATTRIBUTES_TO_CHECK,
    LEAST_WAIT_MS,
    note_stall,
    refused_answer,
    timed_out,
)
from brokers.server.metrics import STALL_SECONDS, Histogram

# From the end of the client id to the low byte of the name's length: in flexible versions tags, no
# transactional id, acks, timeout and a count; in the older ones a longer id, count and length.
_TO_NAME_FLEXIBLE: Final = 23
_TO_NAME_PLAIN: Final = 27
# From the end of the name to the length of the records: a count and the partition's index.
_TO_RECORDS_FLEXIBLE: Final = 5
_TO_RECORDS_PLAIN: Final = 8
# From the end of the client id to the low byte of the number of topics.
_TOPICS_FLEXIBLE: Final = 8
_TOPICS_PLAIN: Final = 11
# As encoded in a head.
_LEARNED_ACKS: Final = frozenset({b"\x00\x01", b"\xff\xff"})
# After the records of a flexible request: the ends of a partition, its topic and the request.
_TAGS: Final = bytes(3)
_INT32: Final = Struct(">i")
_unpack_size: Final = _INT32.unpack_from


class Template:
    """One head, and the response to it without its numbers."""

    __slots__ = ("after", "before", "key", "pack", "size", "wait_ms")

    def __init__(self, topic: str, index: int, wait_ms: int, before: bytes, after: bytes) -> None:
        self.key = (topic, index)
        self.wait_ms = wait_ms
        self.before = before
        self.after = after
        form = Struct(f">ii{len(before)}sqqq{len(after)}s")
        self.size = form.size - 4
        self.pack = form.pack


class LateProduce(LateAnswer):
    """The response to a batch that waits for the high watermark."""

    __slots__ = ("_began", "_correlation", "_frame", "_lane", "_template")

    def __init__(
        self, lane: "ProduceLane", template: Template, correlation: int, frame: bytes, began: float
    ) -> None:
        super().__init__(lane.context, template.wait_ms)
        self._lane = lane
        self._template = template
        self._correlation = correlation
        self._frame = frame
        self._began = began

    def reached(self, _slot: int) -> None:
        if self._channel is not None:
            self._lane.waited(self._began)
            self.finish(self._frame)

    def lost(self, _slot: int, error: KafkaError) -> None:
        if self._channel is not None:
            self._lane.waited(self._began)
            self.finish(self._lane.refused(self._template, self._correlation, error))

    def expire(self) -> None:
        self.lost(0, timed_out())


class ProduceLane:
    """The lane of one version. See the package."""

    KEY: ClassVar[int] = 0
    # From the first whose responses have three offsets in a row.
    VERSIONS: ClassVar[tuple[int, int]] = (5, 11)

    __slots__ = (
        "_api",
        "_clock",
        "_find",
        "_is_flexible",
        "_leader",
        "_now_ms",
        "_to_name",
        "_to_records",
        "_version",
        "context",
        "observe",
        "templates",
    )

    def __init__(self, context: Context, api: Api, version: int, seconds: Histogram) -> None:
        self.templates: Templates[Template] = Templates()
        self._find = self.templates.get
        self.context = context
        self._api = api
        self._version = version
        self.observe = seconds.observe
        self._clock = context.clock.monotonic
        self._now_ms = context.clock.now_ms
        self._is_flexible = api.is_flexible(version)
        to_name = _TO_NAME_FLEXIBLE if self._is_flexible else _TO_NAME_PLAIN
        self._to_name = to_name
        # The length of a compact name is one more than its bytes.
        self._to_records = to_name + (
            _TO_RECORDS_FLEXIBLE if self._is_flexible else 1 + _TO_RECORDS_PLAIN
        )

    def serve(
        self, data: bytearray, view: memoryview, count: int, correlation: int, now: float
    ) -> "bytes | LateProduce | None":
        """Append and answer; None if nothing has changed and the regular path is needed."""
        # If the guessed positions are wrong, no template is found.
        at = data[CLIENT_ID_LOW]
        at += self._to_records + data[at + self._to_name]
        head = bytes(view[HEAD_START:at])
        template = self._find(head)
        if template is None:
            self._learn(head, view, count, now)
            return None
        if self._is_flexible:
            size = data[at]
            at += 1
            if size > 127:
                # Two bytes or three, as most batches have, or any other number of them.
                if data[at] < 128:
                    size += (data[at] << 7) - 128
                    at += 1
                elif data[at + 1] < 128:
                    size += (data[at] << 7) + (data[at + 1] << 14) - 16_512
                    at += 2
                else:
                    size, at = _length(data, at - 1)
            stop = at + size - 1
            if stop + 3 != count or view[stop:count] != _TAGS:
                return None
        else:
            stop = at + 4 + _unpack_size(data, at)[0]
            at += 4
            if stop != count:
                return None
        context = self.context
        if stop - at < HEADER_SIZE or not context.is_serving:
            return None
        records = view[at:stop]
        partition = context.replicas.led(template.key)
        if (
            partition is None
            or records[ATTRIBUTES_POSITION] >= FIRST_ATTRIBUTES_TO_CHECK
            or (partition.is_synced and context.replicas.room.is_full_of_appends)
        ):
            return None
        try:
            appended = partition.append(records, self._now_ms())
        except (KafkaError, Unready) as error:
            return self._not_appended(template, correlation, error, now)
        seconds = self._clock() - now
        if seconds > STALL_SECONDS:
            note_stall(context, seconds)
        frame = template.pack(
            template.size,
            correlation,
            template.before,
            appended.base_offset,
            appended.log_append_time_ms,
            partition.log.start_offset,
            template.after,
        )
        if appended.last_offset < partition.high_watermark:
            self.observe(seconds)
            return frame
        late = LateProduce(self, template, correlation, frame, now)
        partition.wait_for(appended.last_offset + 1, late, 0)
        return late

    def waited(self, began: float) -> None:
        """Record the time of a late response."""
        self.observe(self._clock() - began)

    def _not_appended(
        self, template: Template, correlation: int, error: KafkaError | Unready, now: float
    ) -> bytes | None:
        if isinstance(error, Unready):
            return None  # the regular path can wait
        self.observe(self._clock() - now)
        return self.refused(template, correlation, error)

    def refused(self, template: Template, correlation: int, error: KafkaError) -> bytes:
        """Return the frame with the error of a batch that was not appended, or is not safe."""
        self.context.metrics.failed(API_NAME)
        message = refused_answer(self.context, self._version, *template.key, error)
        body = b"".join(codec(ProduceResponse, self._version).encode(message))
        return response_head(self._api, self._version, correlation, len(body)) + body

    def _learn(self, head: bytes, view: memoryview, count: int, now: float) -> None:
        """Make a template of a request, if the lane can serve its kind.

        Only in a request that Samsa's own encoder would encode to the same bytes are all positions
        certain.
        """
        if (
            len(head) > MAX_HEAD_BYTES
            or HEAD_START + len(head) >= count
            or not self._seems_plain(head)
            or not self.templates.has_room(now)
        ):
            return
        own = codec(ProduceRequest, self._version)
        try:
            request = read_request(view[4:count], {self._api.key: self._api}, 0)
            message = own.decode(request.body)
        except ProtocolError:
            return
        partition = _only_partition(message)
        if partition is None or message.transactional_id is not None or message.acks not in (1, -1):
            return
        topic, index, size = partition
        if topic in INTERNAL_TOPICS:
            return  # the regular path refuses it with an error
        ending = size + (len(_TAGS) if self._is_flexible else 0)
        length = _length_bytes(size) if self._is_flexible else _INT32.size
        if (
            len(head) != count - ending - length - HEAD_START
            # Only topics that this broker leads are served here; other names may contain markers.
            or self.context.replicas.led((topic, index)) is None
            # As bytes, since views are compared item by item.
            or b"".join(own.encode(message)) != bytes(request.body)
        ):
            return
        wait_ms = max(message.timeout_ms, LEAST_WAIT_MS)
        self.templates.keep(head, self._template(topic, index, wait_ms))

    def _seems_plain(self, head: bytes) -> bool:
        """Whether a head seems to request a response and to name one partition, from a quick look.

        Clients repeat other requests too, which would otherwise be decoded twice each time.
        """
        start = 2 + head[1]  # after the client id
        one = 2 if self._is_flexible else 1
        topics = head[start + (_TOPICS_FLEXIBLE if self._is_flexible else _TOPICS_PLAIN)]
        return head[start + 2 : start + 4] in _LEARNED_ACKS and topics == head[-5] == one

    def _template(self, topic: str, index: int, wait_ms: int) -> Template:
        answer = PartitionProduceResponse(index, ErrorCode.NONE, *MARKS)
        message = ProduceResponse(
            responses=[TopicProduceResponse(name=topic, partition_responses=[answer])]
        )
        body = b"".join(codec(ProduceResponse, self._version).encode(message))
        head = response_head(self._api, self._version, 0, len(body))[8:]
        before, after = body.split(OFFSETS.pack(*MARKS))
        return Template(topic, index, wait_ms, head + before, after)


def _only_partition(message: ProduceRequest) -> tuple[str, int, int] | None:
    """Return topic, index and records size of a request that writes to one partition."""
    if len(message.topic_data) != 1 or len(message.topic_data[0].partition_data) != 1:
        return None
    topic = message.topic_data[0]
    partition: Any = topic.partition_data[0]
    if partition.records is None:
        return None
    return topic.name, partition.index, len(partition.records)


def _length(data: bytearray, at: int) -> tuple[int, int]:
    try:
        return read_uvarint(data, at)
    except (ProtocolError, IndexError):
        return 0, at  # no valid length, so the regular path reports the error


def _length_bytes(size: int) -> int:
    """Return how many bytes the compact length of the records takes."""
    return max(1, ((size + 1).bit_length() + 6) // 7)
