"""From a batch to its records, one at a time.

Every number in a record may lie, so none is believed before it is held against the bytes left, and
every lie ends in CORRUPT_MESSAGE. Memory stays within one copy of the unpacked body plus the record
at hand; a compressed body is unpacked under the caller's cap first.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, Batch
from brokers.protocol.records.compression import decompress

# Length, attributes, timestamp delta, offset delta, key, value, header count: a byte each.
MIN_RECORD_SIZE: Final = 7
MAX_INT32: Final = 2**31 - 1
# A zigzag varint of 64 bits has at most ten bytes.
_MAX_SHIFT: Final = 63

Header = tuple[bytes, bytes | None]


class Record(NamedTuple):
    """One record. A named tuple, because a reader makes one for each of millions."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    # Header keys stay bytes: no broker decodes them, so one that is not UTF-8 must stay readable.
    headers: tuple[Header, ...]


def records(batch: Batch, *, max_bytes: int) -> Iterator[Record]:
    """Read every record of a batch that unpacks to at most `max_bytes`.

    Offsets must rise and stay within the batch; gaps are what compaction leaves. The CRC is not
    looked at, which is the business of whoever took the batch in.
    """
    if batch.record_count == 0:
        # Compaction keeps an empty batch for its producer's sequence.
        _expect_end(batch, batch.size - HEADER_SIZE)
        return
    body = decompress(batch.compression, batch.body, max_bytes=max_bytes)
    if not 0 < batch.record_count <= len(body) // MIN_RECORD_SIZE:
        raise _corrupt(batch, f"{batch.record_count} records do not fit into {len(body)} bytes")
    fixed_time = batch.max_timestamp if batch.uses_log_append_time else None
    position, last_delta = 0, -1
    for _ in range(batch.record_count):
        try:
            time_delta, delta, key, value, headers, position = _read_record(body, position)
        except (IndexError, _Lie) as error:
            raise _corrupt(batch, f"{error} at byte {position} of the records") from error
        if not last_delta < delta <= batch.last_offset_delta:
            raise _corrupt(
                batch,
                f"offset delta {delta} follows {last_delta}, the last one is "
                f"{batch.last_offset_delta}",
            )
        last_delta = delta
        timestamp = batch.base_timestamp + time_delta if fixed_time is None else fixed_time
        yield Record(batch.base_offset + delta, timestamp, key, value, headers)
    _expect_end(batch, len(body) - position)


class _Lie(Exception):
    """A number in a record that its bytes do not bear out."""


_Fields = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]


def _read_record(body: bytes, at: int) -> _Fields:
    """Read the record at `at`: both deltas, key, value, headers, and where the next one begins.

    Fields only ever move forward, so one comparison at the end proves that every slice on the way
    lay inside the record. Numbers of one byte, which most are, are read without a call.
    """
    length, at = _int(body, at)
    end = at + length
    if length < 0 or end > len(body):
        raise _Lie(f"record of {length} bytes")
    at += 1  # The attributes of a record are unused and ignored.
    time_delta, at = _long(body, at)
    offset_delta, at = _int(body, at)
    key, at = _nullable(body, at)
    value, at = _nullable(body, at)
    count = body[at]
    at += 1
    headers: tuple[Header, ...] = ()
    if count:
        count, at = _int(body, at - 1)
        if not 0 <= count <= (end - at) // 2:
            raise _Lie(f"{count} headers in {end - at} bytes")
        headers, at = _read_headers(body, at, count)
    if at != end:
        raise _Lie(f"record of {length} bytes whose fields take {length + at - end}")
    return time_delta, offset_delta, key, value, headers, end


def _read_headers(body: bytes, at: int, count: int) -> tuple[tuple[Header, ...], int]:
    headers: list[Header] = []
    for _ in range(count):
        key, at = _nullable(body, at)
        if key is None:
            raise _Lie("header without a key")
        value, at = _nullable(body, at)
        headers.append((key, value))
    return tuple(headers), at


def _nullable(body: bytes, at: int) -> tuple[bytes | None, int]:
    length = body[at]
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        at += 1
    else:
        length, at = _int(body, at)
    if length < 0:
        if length == -1:
            return None, at
        raise _Lie(f"length of {length}")
    return body[at : at + length], at + length


def _int(body: bytes, at: int) -> tuple[int, int]:
    value, at = _long(body, at)
    if not -MAX_INT32 - 1 <= value <= MAX_INT32:
        raise _Lie(f"{value} where 32 bits are allowed")
    return value, at


def _long(body: bytes, at: int) -> tuple[int, int]:
    byte = body[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift > _MAX_SHIFT:
            raise _Lie("a number of more than ten bytes")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >> 64:
        raise _Lie("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), at


def _expect_end(batch: Batch, left: int) -> None:
    if left:
        raise _corrupt(batch, f"{left} bytes follow the {batch.record_count} records")


def _corrupt(batch: Batch, message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {batch.base_offset}: {message}")
