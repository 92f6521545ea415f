"""Serves fetches of one partition without a session, if the requested records are there.

librdkafka fetches this way: each request of a small consumer has one partition. A request that has
to wait, or whose response needs more than records, takes the regular path.
"""

from collections.abc import Sized
from struct import Struct
from typing import Any, ClassVar, Final

from brokers.protocol.apis import Api
from brokers.protocol.codec import codec
from brokers.protocol.errors import KafkaError, ProtocolError
from brokers.protocol.headers import read_request, response_head
from brokers.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from brokers.protocol.primitives import uvarint
from brokers.replication.partition import NO_EPOCH, Partition
from brokers.server.context import Context
from brokers.server.express.templates import (
    CLIENT_ID_LOW,
    HEAD_START,
    MARKS,
    MAX_HEAD_BYTES,
    OFFSETS,
    Templates,
)
from brokers.server.fetch_reads import FIRST_WITH_IDS, READ_COMMITTED
from brokers.server.fetch_sessions import FINAL_EPOCH, NO_SESSION
from brokers.server.file_range import FileRange
from brokers.server.handlers.fetch import MAX_FETCH_BYTES, min_bytes
from brokers.server.metrics import Histogram

# From the end of the client id to the low byte of the name's length, and from the end of the name
# to the fetch offset; in versions with topic ids, the sum of both.
_NAME_PLAIN: Final = (44, 13)
_NAME_FLEXIBLE: Final = (41, 9)
_ID_WITH_REPLICA: Final = 66
_ID_ALONE: Final = 62
_FIRST_WITHOUT_REPLICA: Final = 15
# From the end of the client id to the session's number and epoch, with everything in between: tags,
# the replica's id, three numbers and the isolation level.
_TAGS_BYTES: Final = 1
_REPLICA_BYTES: Final = 4
_LIMITS_BYTES: Final = 13
_OF_NO_SESSION: Final = Struct(">ii").pack(NO_SESSION, FINAL_EPOCH)
_OFFSET: Final = Struct(">q")
_unpack_offset: Final = _OFFSET.unpack_from
_pack_length: Final = Struct(">i").pack
_ONE_RECORD_BYTE: Final = b"x"


class Template:
    """The contents of one kind of request, and its response without numbers and records."""

    __slots__ = (
        "after",
        "before",
        "between",
        "is_committed",
        "key",
        "leader_epoch",
        "max_bytes",
        "min_bytes",
        "pack",
        "size",
    )

    def __init__(
        self, request: FetchRequest, topic: str | bytes, before: bytes, between: bytes, after: bytes
    ) -> None:
        wanted = request.topics[0].partitions[0]
        whole = min(request.max_bytes, MAX_FETCH_BYTES)
        # By the topic's name, or by its id in versions with ids.
        self.key: Any = (topic, wanted.partition)
        self.leader_epoch = wanted.current_leader_epoch
        self.max_bytes = min(wanted.partition_max_bytes, whole) if whole > 0 else 0
        # Without records, the regular path must build the response.
        self.min_bytes = max(1, min_bytes(request))
        self.is_committed = request.isolation_level == READ_COMMITTED
        self.before = before
        self.between = between
        self.after = after
        form = Struct(f">ii{len(before)}sqqq{len(between)}s")
        self.size = form.size - 4 + len(after)
        self.pack = form.pack


class FetchLane:
    """The lane of one version. See the package."""

    KEY: ClassVar[int] = 1
    # From the first in which clients can read zstd, so that batches need no inspection.
    VERSIONS: ClassVar[tuple[int, int]] = (10, 18)

    __slots__ = (
        "_api",
        "_by_id",
        "_by_name",
        "_clock",
        "_context",
        "_find",
        "_has_ids",
        "_is_flexible",
        "_seconds",
        "_to_name",
        "_to_offset",
        "_to_session",
        "_version",
        "templates",
    )

    def __init__(self, context: Context, api: Api, version: int, seconds: Histogram) -> None:
        self.templates: Templates[Template] = Templates()
        self._find = self.templates.get
        self._context = context
        self._api = api
        self._version = version
        self._seconds = seconds
        self._clock = context.clock.monotonic
        self._is_flexible = api.is_flexible(version)
        self._has_ids = version >= FIRST_WITH_IDS
        self._to_name, self._to_offset = _NAME_FLEXIBLE if self._is_flexible else _NAME_PLAIN
        self._to_offset += self._to_name
        self._to_session = _LIMITS_BYTES + (_TAGS_BYTES if self._is_flexible else 0)
        if version < _FIRST_WITHOUT_REPLICA:
            self._to_session += _REPLICA_BYTES
        if self._has_ids:
            self._to_offset = _ID_ALONE if version >= _FIRST_WITHOUT_REPLICA else _ID_WITH_REPLICA

    def serve(
        self, data: bytearray, view: memoryview, count: int, correlation: int, now: float
    ) -> list[Sized] | None:
        """Plan the read and answer; None if the request needs the regular path."""
        # If the guessed positions are wrong, no template is found.
        at = data[CLIENT_ID_LOW]
        if not self._has_ids:
            at += data[at + self._to_name]
        at += self._to_offset
        head = bytes(view[HEAD_START:at]) + view[at + 8 : count]
        template = self._find(head)
        if template is None:
            self._learn(head, at, view, count, now)
            return None
        context = self._context
        if not context.is_serving:
            return None
        (offset,) = _unpack_offset(view, at)
        replicas = context.replicas
        partition: Partition | None = (
            replicas.led_by_id(template.key) if self._has_ids else replicas.led(template.key)
        )
        if partition is None or template.leader_epoch not in (NO_EPOCH, partition.leader_epoch):
            return None
        try:
            if template.is_committed and _aborted(partition, offset):
                return None
            piece = partition.read(offset, template.max_bytes, min_one_batch=True)
        except KafkaError:
            return None  # the regular path finds the same error and reports it
        length = piece.length
        if length < template.min_bytes:
            piece.release()
            return None
        partition.sent_bytes += length
        prefix = uvarint(length + 1) if self._is_flexible else _pack_length(length)
        high_watermark = partition.high_watermark
        answer: list[Sized] = [
            template.pack(
                template.size + len(prefix) + length,
                correlation,
                template.before,
                high_watermark,
                partition.last_stable_offset,
                partition.log.start_offset,
                template.between,
            )
            + prefix,
            FileRange(piece),
        ]
        if template.after:
            answer.append(template.after)
        self._seconds.observe(self._clock() - now)
        return answer

    def _learn(self, head: bytes, at: int, view: memoryview, count: int, now: float) -> None:
        """Make a template of a request, if the lane can serve its kind.

        Only in a request that Samsa's own encoder would encode to the same bytes are all positions
        certain.
        """
        session = 2 + head[1] + self._to_session
        if (
            len(head) > MAX_HEAD_BYTES
            or at + _OFFSET.size > count
            # Readers with sessions also repeat requests, but with a different head each time.
            or head[session : session + len(_OF_NO_SESSION)] != _OF_NO_SESSION
            or not self.templates.has_room(now)
        ):
            return
        own = codec(FetchRequest, self._version)
        try:
            request = read_request(view[4:count], {self._api.key: self._api}, 0)
            message = own.decode(request.body)
        except ProtocolError:
            return
        wanted = _only_partition(message)
        if (
            wanted is None
            # Only topics that this broker leads are served here; other names may contain markers.
            or self._led(message.topics[0], wanted.partition) is None
            or b"".join(own.encode(message)) != request.body
        ):
            return
        wanted.fetch_offset = MARKS[0]
        marked = b"".join(own.encode(message))
        if marked.find(_OFFSET.pack(MARKS[0])) != at - (count - len(marked)):
            return
        self.templates.keep(head, self._template(message))

    def _led(self, topic: FetchTopic, index: int) -> Partition | None:
        replicas = self._context.replicas
        if self._has_ids:
            return replicas.led_by_id((topic.topic_id, index))
        return replicas.led((topic.topic, index))

    def _template(self, request: FetchRequest) -> Template:
        topic = request.topics[0]
        data = PartitionData(
            partition_index=topic.partitions[0].partition,
            high_watermark=MARKS[0],
            last_stable_offset=MARKS[1],
            log_start_offset=MARKS[2],
            aborted_transactions=[] if request.isolation_level == READ_COMMITTED else None,
            records=_ONE_RECORD_BYTE,
        )
        answered = FetchableTopicResponse(partitions=[data])
        if self._has_ids:
            answered.topic_id = topic.topic_id
        else:
            answered.topic = topic.topic
        parts = codec(FetchResponse, self._version).encode(FetchResponse(responses=[answered]))
        first, _record, *after = map(bytes, parts)
        head = response_head(self._api, self._version, 0, len(first))[8:]
        before, between = first.split(OFFSETS.pack(*MARKS))
        length = len(uvarint(1 + len(_ONE_RECORD_BYTE))) if self._is_flexible else 4
        return Template(
            request,
            topic.topic_id if self._has_ids else topic.topic,
            head + before,
            between[:-length],
            b"".join(after),
        )


def _aborted(partition: Partition, offset: int) -> bool:
    """Whether a reader of committed data needs a list of aborted transactions."""
    return bool(partition.aborted_transactions(offset, partition.last_stable_offset))


def _only_partition(message: FetchRequest) -> FetchPartition | None:
    """Return the partition of a plain consumer request, if it has exactly one."""
    is_plain = (
        message.replica_id == -1
        and message.replica_state is None
        and message.session_id == NO_SESSION
        and message.session_epoch == FINAL_EPOCH
        and len(message.topics) == 1
        and len(message.topics[0].partitions) == 1
    )
    if not is_plain:
        return None
    wanted = message.topics[0].partitions[0]
    return wanted if wanted.last_fetched_epoch == NO_EPOCH else None
