"""An idempotent producer: writes records in order, at least once, and once while its id is valid.

Each partition has one batch in flight and a queue behind it, so that a retry sends the same batch
with the same sequence number, which a broker does not write again. For one task, in one thread.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_integration.datasource import encode
from spark_integration.datasource.codecs import decompress
from spark_integration.datasource.encode import Records
from spark_integration.datasource.errors import SamsaError
from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.cluster import FIRST_PAUSE, LONGEST_PAUSE, Cluster
from spark_integration.datasource.wire.connection import Connection
from spark_integration.datasource.wire.errors import BrokerError, Unreachable
from spark_integration.datasource.wire.messages import Produced, Producer, TopicPartition

# The limit of one request, which its last batch may exceed: brokers refuse more than 100 MB.
REQUEST_BYTES: Final = 8 * 1024 * 1024
# How long a broker waits for replicas.
REPLICAS_MS: Final = 30_000
# Sequence numbers count records in 31 bits, and wrap.
SEQUENCES: Final = 2**31
MESSAGE_TOO_LARGE: Final = frozenset({10, 18})
# The broker has the batch already: a response was lost.
DUPLICATE: Final = 46
# The broker has lost this producer's state, or has another one: continue with a new producer id.
LOST_IDENTITY: Final = frozenset({45, 47, 59})
# Each costs one request; a broker that always loses the state is broken itself.
MAX_IDENTITIES: Final = 8


class WriteFailed(SamsaError):
    """Records could not be written; the message says why and what to do."""


@dataclass(slots=True, kw_only=True)
class Sealed:
    """A compressed batch; it has a sequence number once it was sent."""

    records: bytes = field(repr=False)
    count: int
    timestamp: int
    sequence: int | None = None


@dataclass(slots=True, kw_only=True)
class Lane:
    """The pending batches of one partition, in order."""

    next_sequence: int = 0
    open: Records | None = None
    sealed: deque[Sealed] = field(default_factory=deque)


class IdempotentProducer:
    """Collects records into batches and sends them."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        codec: int,
        batch_bytes: int,
        buffer_bytes: int,
        delivery_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._codec = codec
        self._batch_bytes = batch_bytes
        self._buffer_bytes = buffer_bytes
        self._delivery_seconds = delivery_seconds
        self._clock = clock
        self._now_ms = now_ms
        self._pause = pause
        self._lanes: dict[TopicPartition, Lane] = {}
        self._identity: Producer | None = None
        self._identities = 0
        self.held_bytes = 0
        self._moved_at = 0.0
        self.written = 0

    def append(
        self,
        where: TopicPartition,
        rows: Iterable[tuple[bytes | None, bytes | None, bytes]],
    ) -> None:
        """Add records of one partition: key, value and encoded headers."""
        lane = self._lanes.setdefault(where, Lane())
        batch_bytes, buffer_bytes = self._batch_bytes, self._buffer_bytes
        for key, value, headers in rows:
            records = lane.open
            if records is not None:
                size = len(key or b"") + len(value or b"") + len(headers)
                if records.size + size > batch_bytes:
                    self._seal(lane)
                    records = None
            if records is None:
                records = lane.open = Records(timestamp=self._now_ms())
            self.held_bytes += records.append(key, value, headers)
            if self.held_bytes >= buffer_bytes:
                self.flush()

    def flush(self) -> None:
        """Send everything pending; return when the brokers have acknowledged it."""
        for lane in self._lanes.values():
            self._seal(lane)
        self._moved_at = self._clock()
        pause = FIRST_PAUSE
        while waiting := {where: lane for where, lane in self._lanes.items() if lane.sealed}:
            before = self.written
            problem = self._try(waiting)
            if problem is None or self.written > before:
                self._moved_at, pause = self._clock(), FIRST_PAUSE
                continue
            if self._clock() - self._moved_at + pause > self._delivery_seconds:
                raise WriteFailed(
                    f"no record could be written for {self._delivery_seconds:.0f} s: {problem};"
                    " check that the brokers are up (./samsa status), and give"
                    " kafka.delivery.timeout.ms more"
                ) from problem
            self._pause(pause * random.uniform(0.5, 1))  # noqa: S311 (no secret)
            pause = min(2 * pause, LONGEST_PAUSE)
        self.held_bytes = 0

    def _seal(self, lane: Lane) -> None:
        """Close and compress the open batch of a partition."""
        if lane.open is None:
            return
        records = b"".join(lane.open.parts)
        packed = encode.pack(self._codec, records)
        self.held_bytes += len(packed) - len(records)
        sealed = Sealed(records=packed, count=lane.open.count, timestamp=lane.open.timestamp)
        lane.sealed.append(sealed)
        lane.open = None

    def _try(self, waiting: Mapping[TopicPartition, Lane]) -> Exception | None:
        """Send the first batch of each partition once; return a retriable error, if any."""
        try:
            identity = self._known_identity()
        except (Unreachable, BrokerError) as error:
            return self._passing(error)
        leaders, problem = self._by_leader(waiting)
        sent: list[tuple[Connection, list[TopicPartition]]] = []
        for node, places in leaders.items():
            try:
                connection = self._cluster.connection_to(node)
                connection.send(messages.PRODUCE, self._request(places, identity))
                sent.append((connection, places))
            except Unreachable as error:
                problem = self._lost(places, error)
        for connection, places in sent:
            try:
                reader = connection.answer(more_seconds=REPLICAS_MS / 1000)
                answers = messages.read_produce(reader)
            except Unreachable as error:
                problem = self._lost(places, error)
                continue
            for where in places:
                problem = self._settle(where, answers.get(where)) or problem
        return problem

    def _known_identity(self) -> Producer:
        if self._identity is None:
            self._identity = self._cluster.init_producer()
        return self._identity

    def _by_leader(
        self, waiting: Iterable[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], Exception | None]:
        """Return the leaders to send to, with the partitions of one request each."""
        leaders: dict[int, list[TopicPartition]] = {}
        sizes: dict[int, int] = {}
        problem: Exception | None = None
        asked: set[str] = set()
        for where in waiting:
            # One metadata request returns the leaders of all partitions of a topic; a partition
            # without a leader must not delay the others.
            if where.topic in asked and not self._cluster.has_leader(where):
                continue
            try:
                node = self._cluster.leader_of(where)
            except (Unreachable, BrokerError) as error:
                problem = self._passing(error)
                asked.add(where.topic)
                continue
            if sizes.get(node, 0) < REQUEST_BYTES:
                leaders.setdefault(node, []).append(where)
                sizes[node] = sizes.get(node, 0) + len(self._lanes[where].sealed[0].records)
        return leaders, problem

    def _request(self, places: Iterable[TopicPartition], identity: Producer) -> bytes:
        batches = {where: self._numbered(self._lanes[where], identity) for where in places}
        return messages.produce_request(batches, timeout_ms=REPLICAS_MS)

    def _numbered(self, lane: Lane, identity: Producer) -> bytes:
        first = lane.sealed[0]
        if first.sequence is None:
            first.sequence = lane.next_sequence
            lane.next_sequence = (lane.next_sequence + first.count) % SEQUENCES
        return encode.batch(
            first.records,
            count=first.count,
            timestamp=first.timestamp,
            codec=self._codec,
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            sequence=first.sequence,
        )

    def _settle(self, where: TopicPartition, answer: Produced | None) -> Exception | None:
        """Handle the result of one batch; return a retriable error, if any."""
        lane = self._lanes[where]
        if answer is None:
            return self._lost([where], Unreachable(f"no response for {where}"))
        if answer.error_code in {0, DUPLICATE}:
            self.written += lane.sealed.popleft().count
            return None
        error = BrokerError(answer.error_code, f"write to {where}", answer.message)
        if answer.error_code in MESSAGE_TOO_LARGE:
            self._halve(where, lane, error)
            return None
        if answer.error_code in LOST_IDENTITY:
            return self._begin_anew(error)
        self._cluster.forget_leader(where)
        return self._passing(error)

    def _lost(self, places: Iterable[TopicPartition], error: Unreachable) -> Unreachable:
        for where in places:
            self._cluster.forget_leader(where)
        return error

    def _passing(self, error: Unreachable | BrokerError) -> Exception:
        """Return a retriable error; raise any other, with what to do."""
        if self._cluster.may_pass(error, self._clock() - self._moved_at):
            return error
        step = NEXT_STEPS.get(error.code, "") if isinstance(error, BrokerError) else ""
        raise WriteFailed(f"{error}{step}") from error

    def _halve(self, where: TopicPartition, lane: Lane, error: BrokerError) -> None:
        """Split a batch that is larger than its topic allows."""
        whole = lane.sealed.popleft()
        records = decompress(self._codec, memoryview(whole.records))
        if whole.count == 1:
            raise WriteFailed(
                f"{error}: one record has {len(records)} bytes, more than the topic allows;"
                f" raise it: ./samsa configs alter topic {where.topic} --set max.message.bytes=…"
            ) from error
        # Nothing of it was written, so its sequence numbers are free.
        assert whole.sequence is not None, "it was sent"
        lane.next_sequence = whole.sequence
        for half in reversed(encode.split(records, whole.count)):
            packed = encode.pack(self._codec, b"".join(half))
            lane.sealed.appendleft(
                Sealed(records=packed, count=len(half), timestamp=whole.timestamp)
            )

    def _begin_anew(self, error: BrokerError) -> Exception:
        """Continue with a new producer id; unacknowledged batches may be written twice."""
        if self._identity is None:
            # Several batches of one request report the same error.
            return error
        self._identities += 1
        if self._identities > MAX_IDENTITIES:
            raise WriteFailed(
                f"{error}, for {MAX_IDENTITIES} producer ids in a row: a broker loses or changes"
                " batches; see its log (./samsa logs)"
            ) from error
        self._identity = None
        for lane in self._lanes.values():
            lane.next_sequence = 0
            for sealed in lane.sealed:
                sealed.sequence = None
        return error


# error code: what to do about it
NEXT_STEPS: Final[Mapping[int, str]] = {
    3: ": the topic does not exist, or has fewer partitions: ./samsa topics create NAME",
    29: ": give the user of this connection the right to write to the topic",
    87: ": a compacted topic accepts only records with a key",
}
