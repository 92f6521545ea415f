"""Tracks each producer's last batches in a partition, and the transactions still open in it.

Has no clock and no files: batches, offsets and time come in, verdicts and the bytes of a snapshot
go out. `check`, before a batch is written, tells whether it is new, a duplicate or refused;
`update`, after it is written, records it. All state can be derived again from the log, from the
newest snapshot on; only the window of duplicates is shorter after a restart, as in Apache Kafka.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import MAX_SEQUENCE, NO_SEQUENCE, TRANSACTIONAL_FLAG, Batch
from brokers.protocol.records.control import EndTxnMarker
from brokers.protocol.records.validation import Origin
from brokers.storage.producer_entry import (
    REMEMBERED_SIZE,
    RING_SIZE,
    Duplicate,
    Producer,
    check_closely,
    decode_snapshot,
    encode_snapshot,
    epoch_error,
    remember,
)
from brokers.storage.producer_ids import SeenProducerIds

# Producers of one partition, about 500 bytes each. Past it the longest silent are forgotten early
# and lose duplicate detection; without a limit, a client that takes a new producer id per batch
# would fill the memory within a day.
MAX_PRODUCERS = 10_000
# Forgetting in steps keeps its cost off the single append.
_FORGET_AT_ONCE = MAX_PRODUCERS // 20
# Transaction version 2 raises the producer epoch before it writes a marker (KIP-890).
_EPOCH_BUMPING_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedTxn:
    """A transaction that a marker just ended; `last_stable_offset` is computed without it."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    is_aborted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerInfo:
    """One active producer, as operators see it; -1 stands for a missing value."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    last_seen_ms: int
    coordinator_epoch: int
    txn_first_offset: int


class ProducerStates:
    """The producers and transactions of one partition. Not thread-safe; belongs to its log.

    `check` and `update` are on the path of every idempotent batch, so both decide the usual case in
    a few comparisons; callers skip them for batches without a producer id.
    """

    __slots__ = ("_ongoing", "_producers", "_seen", "_unreplicated")

    def __init__(self, seen: SeenProducerIds | None = None) -> None:
        self._seen = seen or SeenProducerIds()
        self._producers: dict[int, Producer] = {}
        # First offset -> producer id of transactions not yet ended, in the order of offsets.
        self._ongoing: dict[int, int] = {}
        # (first offset, marker offset) of ended ones whose marker may not be replicated, sorted.
        self._unreplicated: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, batch: Batch, origin: Origin = Origin.CLIENT) -> Duplicate | None:
        """Return None if the batch may be appended, the earlier append if it is a duplicate.

        Raises KafkaError when its epoch, sequence or transaction does not fit the producer's state.
        An unknown producer may begin at any sequence: retention or expiry may have removed its
        state. Replicated batches were checked by the leader and do not come here.
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            if len(self._producers) >= MAX_PRODUCERS and not self._forget_silent():
                reason = f"all {MAX_PRODUCERS} producers of the partition have open transactions"
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, reason)
            return None
        if (
            batch.base_sequence == producer.next_sequence
            and batch.producer_epoch == producer.epoch
            and (producer.txn_first_offset < 0 or batch.attributes & TRANSACTIONAL_FLAG)
        ):
            return None
        return check_closely(batch, producer, origin)

    def check_marker(
        self, batch: Batch, marker: EndTxnMarker, transaction_version: int = 0
    ) -> None:
        """Raise KafkaError unless this marker may end the producer's transaction now.

        From version 2 on a marker has a raised epoch, so one at the current epoch is late; but if
        nothing is open it is the retry of a marker that arrived, and harmless (KAFKA-19999).
        """
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return
        is_late = batch.producer_epoch < producer.epoch
        if transaction_version >= _EPOCH_BUMPING_VERSION and producer.txn_first_offset >= 0:
            is_late = batch.producer_epoch <= producer.epoch
        if is_late:
            raise epoch_error(batch, producer)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            reason = (
                f"marker of producer {batch.producer_id} comes from coordinator epoch "
                f"{marker.coordinator_epoch}, epoch {producer.coordinator_epoch} was seen"
            )
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, reason)

    def update(self, batch: Batch, base_offset: int, now_ms: int) -> None:
        """Record a data batch that was written at `base_offset`.

        Expiry counts from `now_ms`: the broker's time for a fresh append (old timestamps of records
        would expire a producer at once), the batch's own when the log is replayed.
        """
        producer_id = batch.producer_id
        epoch = batch.producer_epoch
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id, epoch)
        elif producer.epoch != epoch:
            producer.begin_epoch(epoch)
        delta = batch.last_offset_delta
        sequence = batch.base_sequence
        if sequence == NO_SEQUENCE:
            producer.next_sequence = NO_SEQUENCE
        else:
            sequence = (sequence + delta) & MAX_SEQUENCE
            producer.next_sequence = (sequence + 1) & MAX_SEQUENCE
        cursor = producer.cursor
        remember(producer.ring, cursor, sequence, delta, base_offset + delta, batch.max_timestamp)
        cursor += REMEMBERED_SIZE
        producer.cursor = cursor if cursor < RING_SIZE else 0
        producer.last_seen_ms = now_ms
        if batch.attributes & TRANSACTIONAL_FLAG and producer.txn_first_offset < 0:
            producer.txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id

    def update_marker(
        self, batch: Batch, base_offset: int, marker: EndTxnMarker, now_ms: int
    ) -> CompletedTxn | None:
        """Record a marker that was written; return None if it ended no open transaction.

        The transaction keeps holding back the last stable offset until `complete`: an abort must be
        in the transaction index before readers may pass it (KAFKA-7866).
        """
        producer_id = batch.producer_id
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id, batch.producer_epoch)
        elif producer.epoch != batch.producer_epoch:
            producer.begin_epoch(batch.producer_epoch)
        first_offset = producer.txn_first_offset
        producer.txn_first_offset = -1
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_seen_ms = now_ms
        if first_offset < 0:
            return None
        others = (first for first in self._ongoing if first != first_offset)
        return CompletedTxn(
            producer_id=producer_id,
            first_offset=first_offset,
            last_offset=base_offset,
            last_stable_offset=next(others, base_offset + 1),
            is_aborted=not marker.is_commit,
        )

    def complete(self, txn: CompletedTxn) -> None:
        """Complete a transaction; from here on it waits only for its marker's replication."""
        del self._ongoing[txn.first_offset]
        insort(self._unreplicated, (txn.first_offset, txn.last_offset))

    def replicated_to(self, high_watermark: int) -> None:
        """Release transactions whose markers are below the high watermark."""
        waiting = self._unreplicated
        done = 0
        while done < len(waiting) and waiting[done][1] < high_watermark:
            done += 1
        del waiting[:done]

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the first transaction that is open or whose end is not replicated."""
        ongoing = next(iter(self._ongoing), None)
        if not self._unreplicated:
            return ongoing
        unreplicated = self._unreplicated[0][0]
        return unreplicated if ongoing is None else min(ongoing, unreplicated)

    def transaction_start(self, producer_id: int) -> int | None:
        """Return the first offset of the producer's open transaction."""
        producer = self._producers.get(producer_id)
        return (
            None if producer is None or producer.txn_first_offset < 0 else producer.txn_first_offset
        )

    def active(self) -> Iterator[ProducerInfo]:
        """Yield every producer that is remembered."""
        for producer_id, producer in self._producers.items():
            last_sequence, _, last_offset, _ = producer.last_batch()
            yield ProducerInfo(
                producer_id=producer_id,
                epoch=producer.epoch,
                last_sequence=last_sequence,
                last_offset=last_offset,
                last_seen_ms=producer.last_seen_ms,
                coordinator_epoch=producer.coordinator_epoch,
                txn_first_offset=producer.txn_first_offset,
            )

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers silent for `expiration_ms`, unless in a transaction; return how many."""
        silent = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.txn_first_offset < 0 and now_ms - producer.last_seen_ms >= expiration_ms
        ]
        for producer_id in silent:
            del self._producers[producer_id]
        return len(silent)

    def clear(self) -> None:
        """Forget everything, before a snapshot is loaded and the log behind it replayed."""
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def snapshot(self) -> bytes:
        """Return the bytes of a `.snapshot` file, in Kafka's format."""
        return encode_snapshot(self._producers)

    def load(self, data: bytes, path: str) -> None:
        """Replace everything by a snapshot's content; StorageCorrupt leaves all as it was."""
        producers = decode_snapshot(data, path)
        self.clear()
        self._producers = producers
        self._seen.note_all(producers)
        open_txns = (
            (producer.txn_first_offset, producer_id)
            for producer_id, producer in producers.items()
            if producer.txn_first_offset >= 0
        )
        self._ongoing.update(sorted(open_txns))

    def _add(self, producer_id: int, epoch: int) -> Producer:
        # Replicated batches come here unchecked; they are in the log, so they must be recorded.
        if len(self._producers) >= MAX_PRODUCERS:
            self._forget_silent()
        producer = self._producers[producer_id] = Producer(epoch)
        self._seen.note(producer_id)
        return producer

    def _forget_silent(self) -> bool:
        """Forget the producers idle the longest; False if all have open transactions."""
        idle = (
            (producer.last_seen_ms, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.txn_first_offset < 0
        )
        oldest = nsmallest(_FORGET_AT_ONCE, idle)
        for _, producer_id in oldest:
            del self._producers[producer_id]
        return bool(oldest)
