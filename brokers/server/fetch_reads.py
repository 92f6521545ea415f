"""Reads the partitions of a fetch, one by one, within the limits of its response.

Knows no sessions, no waiting and no order of responses. Records are not read here: a response holds
the ranges of files from which the kernel will send them, and every range must be released, by the
connection that sent it or by `release`.
"""

from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    PartitionData,
)
from brokers.protocol.records.batch import COMPRESSION_MASK
from brokers.protocol.records.compression import Compression
from brokers.replication.partition import NO_EPOCH, Partition
from brokers.replication.replicas import Replicas
from brokers.server.fetch_sessions import Interest
from brokers.server.file_range import FileRange
from brokers.storage.log import LogSlice
from brokers.storage.txn_index import AbortedTxn

READ_COMMITTED: Final = 1

_FIRST_WITH_STORAGE_ERROR: Final = 6
_FIRST_WITH_ZSTD: Final = 10
FIRST_WITH_IDS: Final = 13

# Of one partition, for clients too old for zstd: each batch must be inspected, in about 2 µs, and
# the smallest have 70 bytes. It is what clients request by default.
MAX_INSPECTED_BYTES: Final = 1024 * 1024

# Errors that need no immediate response: a client with outdated metadata retries, and would do so
# without a pause.
_UNHURRIED: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
# Numbers that stand for unknown values.
_UNKNOWN: Final = -1


class Reading:
    """The result of one pass over the partitions of a fetch. `data` is in their order."""

    __slots__ = ("data", "is_hurried", "sent", "size", "watched")

    def __init__(self) -> None:
        self.data: list[PartitionData | None] = []  # None: unchanged for the client
        self.size = 0  # bytes of records
        self.is_hurried = False  # something in it must be sent at once
        self.watched: list[Partition] = []  # those that could be read
        self.sent: list[tuple[Partition, int]] = []  # bytes of records by partition, for the feed

    def release(self) -> None:
        """Release the files of a response that is not sent."""
        for data in self.data:
            if data is not None and isinstance(data.records, FileRange):
                data.records.release()


def read(
    replicas: Replicas,
    interests: list[Interest],
    *,
    version: int,
    max_bytes: int,
    isolation_level: int,
    is_going: bool = False,
) -> Reading:
    """Read all partitions once; the first batch is taken regardless of its size (KIP-74).

    With `is_going`, partitions without news for a session's client are skipped.
    """
    found = Reading()
    try:
        _read_into(
            found,
            replicas,
            interests,
            version=version,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            is_going=is_going,
        )
    except BaseException:
        # Files that stay held could never be deleted.
        found.release()
        raise
    return found


def _read_into(
    found: Reading,
    replicas: Replicas,
    interests: list[Interest],
    *,
    version: int,
    max_bytes: int,
    isolation_level: int,
    is_going: bool,
) -> None:
    has_ids = version >= FIRST_WITH_IDS
    for interest in interests:
        wanted = interest.wanted
        name = interest.name
        try:
            if has_ids:
                assert isinstance(name, bytes), f"{name!r} is not a topic id"
                partition = replicas.leader_by_id(name, wanted.partition)
            else:
                assert isinstance(name, str), f"{name!r} is not a topic name"
                partition = replicas.leader(name, wanted.partition)
            if wanted.current_leader_epoch != partition.leader_epoch:
                partition.check_epoch(wanted.current_leader_epoch)
            if is_going and _is_known(partition, interest):
                found.watched.append(partition)
                found.data.append(None)
                continue
            # First, since a failure after a read would leave its file held.
            aborted = (
                _aborted(partition, wanted.fetch_offset)
                if isolation_level == READ_COMMITTED
                else None
            )
            data = _read_one(partition, wanted, found, version, max_bytes - found.size)
            data.aborted_transactions = aborted if data.records or aborted is None else []
        except KafkaError as error:
            found.data.append(refusal(wanted.partition, error.code, version))
            if error.code not in _UNHURRIED:
                found.is_hurried = True
        else:
            found.watched.append(partition)
            found.data.append(data)


def _is_known(partition: Partition, interest: Interest) -> bool:
    """Whether a reader at the end of a partition already has its current state.

    That holds for most partitions of a large session, which then need no entry in the response.
    """
    wanted, high_watermark = interest.wanted, partition.high_watermark
    return (
        wanted.fetch_offset == high_watermark == interest.high_watermark
        and partition.last_stable_offset == interest.last_stable_offset
        and partition.log.start_offset == interest.log_start_offset
        and wanted.last_fetched_epoch in (NO_EPOCH, partition.leader_epoch)
    )


def refusal(index: int, code: ErrorCode, version: int) -> PartitionData:
    """Return the response for a partition that cannot be read."""
    if code is ErrorCode.KAFKA_STORAGE_ERROR and version < _FIRST_WITH_STORAGE_ERROR:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=_UNKNOWN,
        aborted_transactions=None,
        records=b"",
    )


def _read_one(
    partition: Partition, wanted: FetchPartition, found: Reading, version: int, left: int
) -> PartitionData:
    offset, epoch = wanted.fetch_offset, wanted.last_fetched_epoch
    data = PartitionData(
        partition_index=wanted.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.start_offset,
        records=b"",
    )
    if epoch != NO_EPOCH:
        data.diverging_epoch = _diverging(partition, epoch, offset)
        if data.diverging_epoch is not None:
            found.is_hurried = True
            return data
    max_bytes = wanted.partition_max_bytes
    if version < _FIRST_WITH_ZSTD:
        max_bytes = min(max_bytes, MAX_INSPECTED_BYTES)
    piece = partition.read(
        offset, min(max_bytes, left) if left > 0 else 0, min_one_batch=found.size == 0
    )
    length = piece.length
    if version < _FIRST_WITH_ZSTD and length:
        length = piece.length = _length_without_zstd(partition, piece, version)
    if length:
        found.size += length
        found.sent.append((partition, length))
        data.records = FileRange(piece)
        if not partition.is_all_read_by(piece):
            # Waiting would not help: the bytes are there and only did not fit.
            found.is_hurried = True
    else:
        piece.release()
    return data


def _diverging(partition: Partition, epoch: int, offset: int) -> EpochEndOffset | None:
    """Return where the reader's history diverges from the log's, if it does (KIP-595, KIP-320)."""
    found, end_offset = partition.epoch_end(epoch)
    if found == NO_EPOCH:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the log knows nothing of leader epoch {epoch}, offset {offset} is not its own",
        )
    if offset < partition.log.start_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is before the log start offset, {partition.log.start_offset}",
        )
    if found < epoch or end_offset < offset:
        return EpochEndOffset(epoch=found, end_offset=end_offset)
    return None


def _length_without_zstd(partition: Partition, piece: LogSlice, version: int) -> int:
    """Return the bytes that an old client can read; UNSUPPORTED_COMPRESSION_TYPE if none."""
    position = 0
    try:
        while position < piece.length:
            attributes, size = partition.batch_at(piece, position)
            if attributes & COMPRESSION_MASK == Compression.ZSTD:
                break
            position += size
        if position == 0:
            raise KafkaError(  # noqa: TRY301 - let go of in one place
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"zstd needs Fetch version {_FIRST_WITH_ZSTD}, this is {version}",
            )
    except KafkaError:
        piece.release()
        raise
    return min(position, piece.length)


def _aborted(partition: Partition, offset: int) -> list[AbortedTransaction]:
    """Return the aborted transactions of a log copied from elsewhere; none are made here yet."""
    found = partition.aborted_transactions(offset, partition.last_stable_offset)
    return [
        AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
        for txn in sorted(found, key=_first_offset)
    ]


def _first_offset(txn: AbortedTxn) -> int:
    return txn.first_offset
