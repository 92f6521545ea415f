"""Reads the records of a batch one at a time: whole, or their outlines only.

Every number in a record may be wrong, so each is compared with the bytes left before use, and a
wrong one is CORRUPT_MESSAGE. Memory stays within one copy of the unpacked body plus the current
record; a compressed body is unpacked under the caller's cap first. Outlines are for checking
incoming batches: they refuse what the whole reading refuses, sooner and with a limit on time, and
they pause, so that a reader on an event loop can continue in a later turn.
"""

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, Batch
from brokers.protocol.records.compression import decompress, decompressing

# Length, attributes, timestamp delta, offset delta, key, value, header count: a byte each.
MIN_RECORD_SIZE: Final = 7
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)
# The shifts of a number's further bytes. A zigzag varint of 32 bits has at most five bytes, one of
# 64 bits ten; Java reads no longer ones, and padding would only make records slow to read.
_INT_SHIFTS: Final = (7, 14, 21, 28)
_LONG_SHIFTS: Final = (*_INT_SHIFTS, 35, 42, 49, 56, 63)
# The length of an absent value, -1.
_NULL: Final = 0x01

Header = tuple[bytes, bytes | None]
_Body = bytes | bytearray


class Record(NamedTuple):
    """One record. A named tuple, because a reader makes one for each of millions."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    # Header keys stay bytes: brokers do not decode them, so invalid UTF-8 is readable.
    headers: tuple[Header, ...]


# Records and headers between two pauses of outlines: 0.2 ms, or 1 ms for the slowest.
PACE: Final = 200

# Offset, timestamp, whether there is a key: the input of a topic's checks. A plain tuple, which is
# made in a tenth of the time of a named one.
Outline = tuple[int, int, bool]


def records(batch: Batch, *, max_bytes: int) -> Iterator[Record]:
    """Yield every record of a batch that unpacks to at most `max_bytes`.

    Offsets must rise and stay within the batch; compaction leaves gaps. The CRC is not checked
    again: that was done when the batch was accepted.
    """
    body = _unpacked(batch, max_bytes)
    fixed_time = batch.max_timestamp if batch.uses_log_append_time else None
    position, last_delta = 0, -1
    for _ in range(batch.record_count):
        try:
            time_delta, delta, key, value, headers, position = _read_record(body, position)
        except (IndexError, _Lie) as error:
            raise _unreadable(batch, error, position) from error
        if not last_delta < delta <= batch.last_offset_delta:
            raise _misplaced(batch, delta, last_delta)
        last_delta = delta
        timestamp = batch.base_timestamp + time_delta if fixed_time is None else fixed_time
        if not MIN_INT64 <= timestamp <= MAX_INT64:
            raise _untimely(batch, delta, timestamp)
        yield Record(batch.base_offset + delta, timestamp, key, value, headers)
    _expect_end(batch, len(body) - position)


def outlines(batch: Batch, *, max_bytes: int, max_parts: int) -> Iterator[Outline | None]:
    """Read and check like `records`, but make no key, value or header.

    Time is bounded too: a batch of more than `max_parts` records and headers is too large. None
    stands for a pause, after PACE parts or one step of unpacking.
    """
    parts_left = max_parts - batch.record_count
    if parts_left < 0:
        raise _too_many_parts(batch, max_parts)
    body = yield from _unpacking(batch, max_bytes)
    paced = 0
    fixed_time = batch.max_timestamp if batch.uses_log_append_time else None
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    position, last_delta = 0, -1
    for _ in range(batch.record_count):
        try:
            time_delta, delta, has_key, headers, at, end = _skim_record(body, position)
            if headers > parts_left:
                raise _too_many_parts(batch, max_parts)
            paced += 1 + headers
            if paced >= PACE:
                for first in range(0, headers, PACE):
                    yield None
                    at = _skim_headers(body, at, min(PACE, headers - first))
                paced = 0
                yield None
            elif headers:
                at = _skim_headers(body, at, headers)
            if at != end:
                raise _overrun(body, position, at, end)
        except (IndexError, _Lie) as error:
            raise _unreadable(batch, error, position) from error
        position = end
        parts_left -= headers
        if not last_delta < delta <= batch.last_offset_delta:
            raise _misplaced(batch, delta, last_delta)
        last_delta = delta
        timestamp = base_timestamp + time_delta if fixed_time is None else fixed_time
        if not MIN_INT64 <= timestamp <= MAX_INT64:
            raise _untimely(batch, delta, timestamp)
        yield base_offset + delta, timestamp, has_key
    _expect_end(batch, len(body) - position)


def stamp_from(
    batch: Batch, offset: int, *, max_bytes: int, max_records: int
) -> tuple[int, int] | None:
    """Find offset and timestamp of the first record at or behind `offset`; None without one.

    For a stored batch: earlier records are skipped by their lengths, without checks.
    MESSAGE_TOO_LARGE for one of more than `max_records`.
    """
    if batch.record_count > max_records:
        raise _too_many_parts(batch, max_records)
    body = _unpacked(batch, max_bytes)
    wanted = offset - batch.base_offset
    is_whole = batch.record_count == batch.last_offset_delta + 1
    in_front = min(max(wanted, 0), batch.record_count) if is_whole else 0
    position = 0
    try:
        for _ in range(in_front):
            length, position = _length(body, position)
            position += length
        for _ in range(batch.record_count - in_front):
            length, at = _length(body, position)
            position = at + length
            time_delta, at = _long(body, at + 1)
            delta, _ = _int(body, at)
            if delta >= wanted:
                fixed_time = batch.max_timestamp if batch.uses_log_append_time else None
                timestamp = batch.base_timestamp + time_delta if fixed_time is None else fixed_time
                if not MIN_INT64 <= timestamp <= MAX_INT64:
                    raise _untimely(batch, delta, timestamp)
                return batch.base_offset + delta, timestamp
    except (IndexError, _Lie) as error:
        raise _unreadable(batch, error, position) from error
    return None


def _unpacked(batch: Batch, max_bytes: int) -> bytes:
    """Unpack the body, and check the header against it and against 64 bits."""
    if batch.record_count == 0:
        # Compaction keeps an empty batch for its producer's sequence.
        _expect_end(batch, batch.size - HEADER_SIZE)
        return b""
    body = decompress(batch.compression, batch.body, max_bytes=max_bytes)
    _check_body(batch, body)
    return body


def _unpacking(batch: Batch, max_bytes: int) -> Generator[None, None, _Body]:
    """Do the same in steps."""
    if batch.record_count == 0:
        return _unpacked(batch, max_bytes)
    body = yield from decompressing(batch.compression, batch.body, max_bytes=max_bytes)
    _check_body(batch, body)
    return body


def _check_body(batch: Batch, body: _Body) -> None:
    if not 0 < batch.record_count <= len(body) // MIN_RECORD_SIZE:
        raise _corrupt(batch, f"{batch.record_count} records do not fit into {len(body)} bytes")
    # The deltas of all records lie between 0 and the last one.
    if batch.last_offset > MAX_INT64:
        raise _corrupt(batch, f"offset {batch.last_offset} does not fit into 64 bits")


class _Lie(Exception):
    """A number in a record that contradicts its bytes."""


_Fields = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]


def _read_record(body: bytes, at: int) -> _Fields:
    """Read the record at `at`: both deltas, key, value, headers, and the start of the next one.

    Positions only ever move forward, so one comparison at the end proves that every slice on the
    way was inside the record. Numbers of one byte, which most are, are read without a call.
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
    headers: tuple[Header, ...] = ()
    if not body[at]:
        at += 1
    else:
        count, at = _header_count(body, at, end)
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


def _skim_record(body: _Body, at: int) -> tuple[int, int, bool, int, int, int]:
    """Read both deltas, whether there is a key, the header count, and the headers' start.

    Last comes the end of the record, which the caller compares with the headers' end.
    """
    length, at = _int(body, at)
    end = at + length
    if length < 0 or end > len(body):
        raise _Lie(f"record of {length} bytes")
    time_delta, at = _long(body, at + 1)
    offset_delta, at = _int(body, at)
    has_key = not _is_null(body, at)
    at = _skip(body, _skip(body, at))
    if not body[at]:
        count, at = 0, at + 1
    else:
        count, at = _header_count(body, at, end)
    return time_delta, offset_delta, has_key, count, at, end


def _skim_headers(body: _Body, at: int, count: int) -> int:
    """Return the end of `count` headers."""
    for _ in range(count):
        if _is_null(body, at):
            raise _Lie("header without a key")
        at = _skip(body, _skip(body, at))
    return at


def _overrun(body: _Body, start: int, at: int, end: int) -> _Lie:
    length, _ = _int(body, start)
    return _Lie(f"record of {length} bytes whose fields take {length + at - end}")


def _length(body: bytes, at: int) -> tuple[int, int]:
    length, at = _int(body, at)
    if length < 0:
        raise _Lie(f"record of {length} bytes")
    return length, at


def _header_count(body: _Body, at: int, end: int) -> tuple[int, int]:
    count, at = _int(body, at)
    if not 0 <= count <= (end - at) // 2:
        raise _Lie(f"{count} headers in {end - at} bytes")
    return count, at


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


def _is_null(body: _Body, at: int) -> bool:
    byte = body[at]
    # The second: -1 in more bytes than it needs.
    return byte == _NULL or (byte >= 0x80 and _int(body, at)[0] == -1)


def _skip(body: _Body, at: int) -> int:
    """Return the end of a value that `_nullable` reads."""
    byte = body[at]
    if byte < 0x80 and not byte & 1:
        return at + 1 + (byte >> 1)
    length, at = _int(body, at)
    if length < -1:
        raise _Lie(f"length of {length}")
    return at + length if length > 0 else at


def _int(body: _Body, at: int) -> tuple[int, int]:
    byte = body[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    for shift in _INT_SHIFTS:
        at += 1
        byte = body[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise _Lie("a number of more than five bytes where 32 bits are allowed")
    value = (value >> 1) ^ -(value & 1)
    if not -MAX_INT32 - 1 <= value <= MAX_INT32:
        raise _Lie(f"{value} where 32 bits are allowed")
    return value, at + 1


def _long(body: _Body, at: int) -> tuple[int, int]:
    byte = body[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    for shift in _LONG_SHIFTS:
        at += 1
        byte = body[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise _Lie("a number of more than ten bytes")
    if value >> 64:
        raise _Lie("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def _misplaced(batch: Batch, delta: int, last_delta: int) -> KafkaError:
    return _corrupt(
        batch,
        f"offset delta {delta} follows {last_delta}, the last one is {batch.last_offset_delta}",
    )


def _untimely(batch: Batch, delta: int, timestamp: int) -> KafkaError:
    return _corrupt(batch, f"timestamp {timestamp} of record {delta} does not fit into 64 bits")


def _too_many_parts(batch: Batch, max_parts: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"{batch.record_count} records and their headers are more than the limit of {max_parts}",
    )


def _expect_end(batch: Batch, left: int) -> None:
    if left:
        raise _corrupt(batch, f"{left} bytes follow the {batch.record_count} records")


def _unreadable(batch: Batch, error: Exception, position: int) -> KafkaError:
    reason = "the bytes end inside of a record" if isinstance(error, IndexError) else error
    return _corrupt(batch, f"{reason} at byte {position} of the records")


def _corrupt(batch: Batch, message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {batch.base_offset}: {message}")
