"""One producer in one partition: its last batches, the check of the next one, its snapshot entry.

Changes no state by itself: `producer_state` decides when. The five batches that a client may repeat
are packed in a ring of bytes, since tuples would cost four times the memory, and there is one ring
per producer and partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import MAX_SEQUENCE, NO_PRODUCER_EPOCH, Batch
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.validation import Origin
from brokers.storage.errors import StorageCorrupt

# A producer has at most five requests in flight, so a repeated batch is one of the last five.
BATCHES_TO_REMEMBER = 5
# Last sequence, last offset delta, last offset, timestamp; all -1 in a place not yet used.
REMEMBERED = Struct(">iiqq")
REMEMBERED_SIZE = REMEMBERED.size
RING_SIZE = REMEMBERED_SIZE * BATCHES_TO_REMEMBER
_EMPTY_RING = b"\xff" * RING_SIZE
# A plain name, because every append calls it.
remember = REMEMBERED.pack_into

# The snapshot file: version, CRC-32C of all that follows it, count; then the producers.
_HEADER = Struct(">hIi")
_CHECKED_POSITION = 6
_SNAPSHOT_VERSION = 1
# Id, epoch, last sequence, last offset, last offset delta, timestamp, coordinator epoch, first
# offset of the open transaction.
_ENTRY = Struct(">qhiqiqiq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A batch that was written before; the client gets the first response again."""

    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer's state. `producer_state` writes the fields itself on the path of each batch."""

    __slots__ = (
        "coordinator_epoch",
        "cursor",
        "epoch",
        "last_seen_ms",
        "next_sequence",
        "ring",
        "txn_first_offset",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        self.ring = bytearray(_EMPTY_RING)
        self.cursor = 0
        self.last_seen_ms = -1
        self.coordinator_epoch = -1
        self.txn_first_offset = -1

    def begin_epoch(self, epoch: int) -> None:
        """Begin a new epoch at sequence 0; batches of the old one cannot be repeated."""
        self.epoch = epoch
        self.next_sequence = 0
        self.ring[:] = _EMPTY_RING
        self.cursor = 0

    def last_batch(self) -> tuple[int, int, int, int]:
        """Return the last sequence, offset delta, last offset and timestamp; all -1 if unknown."""
        return REMEMBERED.unpack_from(self.ring, (self.cursor - REMEMBERED_SIZE) % RING_SIZE)

    def find(self, batch: Batch) -> Duplicate | None:
        """Return the earlier append of the same range of sequences."""
        wanted = (batch.last_sequence, batch.last_offset_delta)
        for last_sequence, delta, last_offset, timestamp in REMEMBERED.iter_unpack(self.ring):
            if (last_sequence, delta) == wanted and last_offset >= 0:
                base_offset = last_offset - delta
                return Duplicate(
                    base_offset=base_offset, last_offset=last_offset, timestamp=timestamp
                )
        return None


def check_closely(batch: Batch, producer: Producer, origin: Origin) -> Duplicate | None:
    """Check a batch that is not the next in order: a duplicate, new epoch, gap or zombie."""
    if origin is Origin.CLIENT and batch.producer_epoch == producer.epoch:
        duplicate = producer.find(batch)
        if duplicate is not None:
            return duplicate
    if batch.producer_epoch < producer.epoch:
        raise epoch_error(batch, producer)
    # The coordinator's offset commits have no sequences.
    if origin is Origin.CLIENT:
        _check_sequence(batch, producer)
    if producer.txn_first_offset >= 0 and not batch.is_transactional:
        reason = (
            f"producer {batch.producer_id} has a transaction open since offset "
            f"{producer.txn_first_offset}, but the batch is not transactional"
        )
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
    return None


def _check_sequence(batch: Batch, producer: Producer) -> None:
    if producer.epoch == NO_PRODUCER_EPOCH:
        return
    # After batches without sequences, as coordinators write them, numbering begins at 0.
    expected = max(producer.next_sequence, 0) if batch.producer_epoch == producer.epoch else 0
    if batch.base_sequence != expected:
        reason = (
            f"producer {batch.producer_id} of epoch {batch.producer_epoch} sent sequence "
            f"{batch.base_sequence}, the next one is {expected}"
        )
        raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, reason)


def epoch_error(batch: Batch, producer: Producer) -> KafkaError:
    # Not PRODUCER_FENCED: this code lets the client abort its transaction and go on (KIP-588).
    reason = (
        f"producer {batch.producer_id} comes with epoch {batch.producer_epoch}, "
        f"epoch {producer.epoch} was seen"
    )
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)


def encode_snapshot(producers: Mapping[int, Producer]) -> bytes:
    """Return the bytes of Kafka's `.snapshot` file: only the last batch of each producer."""
    data = bytearray(_HEADER.size + _ENTRY.size * len(producers))
    position = _HEADER.size
    for producer_id, producer in producers.items():
        last_sequence, delta, last_offset, _ = producer.last_batch()
        _ENTRY.pack_into(
            data,
            position,
            producer_id,
            producer.epoch,
            last_sequence,
            last_offset,
            max(delta, 0),  # Kafka writes 0, not -1, for a producer without a batch.
            producer.last_seen_ms,
            producer.coordinator_epoch,
            producer.txn_first_offset,
        )
        position += _ENTRY.size
    _HEADER.pack_into(data, 0, _SNAPSHOT_VERSION, 0, len(producers))
    crc = crc32c(memoryview(data)[_CHECKED_POSITION:])
    _HEADER.pack_into(data, 0, _SNAPSHOT_VERSION, crc, len(producers))
    return bytes(data)


def decode_snapshot(data: bytes, path: str) -> dict[int, Producer]:
    """Return the producers of a snapshot; StorageCorrupt if it is damaged."""
    if len(data) < _HEADER.size:
        raise StorageCorrupt(path, len(data), f"{len(data)} bytes are not a snapshot")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise StorageCorrupt(path, 0, f"version is {version}, only {_SNAPSHOT_VERSION} is known")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise StorageCorrupt(path, _CHECKED_POSITION, f"{len(data)} bytes for {count} producers")
    actual = crc32c(memoryview(data)[_CHECKED_POSITION:])
    if actual != crc:
        raise StorageCorrupt(path, 2, f"CRC is {actual:#010x}, the file says {crc:#010x}")
    producers = {}
    for position in range(_HEADER.size, len(data), _ENTRY.size):
        producer_id, *values = _ENTRY.unpack_from(data, position)
        producer = _restore(*values)
        if producer is None or producer_id < 0:
            raise StorageCorrupt(path, position, f"{producer_id}: {values} is not a producer")
        producers[producer_id] = producer
    return producers


def _restore(
    epoch: int,
    sequence: int,
    offset: int,
    delta: int,
    seen_ms: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> Producer | None:
    """Return the producer of a snapshot entry; None for impossible values."""
    if min(epoch, sequence, offset, txn_first_offset) < -1 or not 0 <= delta <= max(offset, 0):
        return None
    producer = Producer(epoch)
    producer.last_seen_ms = seen_ms
    producer.coordinator_epoch = coordinator_epoch
    producer.txn_first_offset = txn_first_offset
    if offset >= 0:
        remember(producer.ring, 0, sequence, delta, offset, seen_ms)
        producer.cursor = REMEMBERED_SIZE
        producer.next_sequence = (sequence + 1) & MAX_SEQUENCE
    return producer
