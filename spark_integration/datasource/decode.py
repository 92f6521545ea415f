"""Decodes record batches to Arrow columns: record lengths in Python, the rest in NumPy and Arrow.

Pure. Several batches are decoded together, since NumPy is slow on a few records. The position of a
field is computed for all records at once; Arrow gathers the bytes from one buffer in which fields
and gaps alternate. Records may be hostile: each position is checked against the end of its record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy
import pyarrow

from spark_integration.datasource.batches import Batch
from spark_integration.datasource.codecs import decompress
from spark_integration.datasource.errors import CorruptBatch

# Arrays of uint8, int64 and bool.
Bytes: TypeAlias = numpy.ndarray
Places: TypeAlias = numpy.ndarray
Mask: TypeAlias = numpy.ndarray

# Padding after the last byte, where a varint might continue.
PADDING: Final = 16
VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10
# A record takes at least two bytes, and so does a header; Arrow can address one buffer up to this
# size.
MAX_BUFFER: Final = 2**31 - 1 - PADDING
HEADERS: Final = pyarrow.list_(
    pyarrow.struct(
        [pyarrow.field("key", pyarrow.string()), pyarrow.field("value", pyarrow.binary())]
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The decompressed records of one batch."""

    data: memoryview = field(repr=False)
    base_offset: int
    base_timestamp: int
    # With the broker's timestamps: the time of all records.
    append_time: int | None
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Decoded columns, with one item for each record."""

    keys: pyarrow.Array
    values: pyarrow.Array
    offsets: Places
    # Milliseconds.
    timestamps: Places
    # 0 for producer timestamps, 1 for those of the broker.
    timestamp_types: Places
    headers: pyarrow.Array | None


def unpack(batch: Batch) -> Section:
    try:
        data = decompress(batch.codec, batch.body)
    except CorruptBatch as error:
        raise CorruptBatch(f"the batch at offset {batch.base_offset}: {error}") from error
    return Section(
        data=data,
        base_offset=batch.base_offset,
        base_timestamp=batch.base_timestamp,
        append_time=batch.max_timestamp if batch.has_append_time else None,
        record_count=batch.record_count,
    )


def decode(
    sections: Sequence[Section], *, start: int, end: int, has_headers: bool = False
) -> Columns:
    """Decode the records with offsets from `start` to before `end`."""
    joined = b"".join([*(section.data for section in sections), bytes(PADDING)])
    if len(joined) > MAX_BUFFER:
        raise CorruptBatch(f"{len(joined)} bytes of records in one piece, over {MAX_BUFFER}")
    ends = record_ends(sections, joined)
    scan = Scan(numpy.frombuffer(joined, dtype=numpy.uint8), begins(ends), ends)
    scan.varints()  # the length, which gave the ends
    scan.skip(1)  # attributes, which are unused
    timestamp_deltas = scan.varints(VARLONG_BYTES)
    offset_deltas = scan.varints()
    counts = numpy.array([section.record_count for section in sections], dtype=numpy.int64)
    offsets = numpy.repeat(of(sections, "base_offset"), counts) + offset_deltas
    wanted = numpy.flatnonzero((offsets >= start) & (offsets < end))
    append_times = numpy.array([s.append_time or 0 for s in sections], dtype=numpy.int64)
    is_append = numpy.array([s.append_time is not None for s in sections], dtype=numpy.bool_)
    is_append = numpy.repeat(is_append, counts)
    created = numpy.repeat(of(sections, "base_timestamp"), counts) + timestamp_deltas
    timestamps = numpy.where(is_append, numpy.repeat(append_times, counts), created)
    buffer = pyarrow.py_buffer(joined)
    keys = gathered(buffer, *scan.field(), wanted)
    values = gathered(buffer, *scan.field(), wanted)
    headers = decode_headers(scan, buffer, wanted) if has_headers else None
    return Columns(
        keys=keys,
        values=values,
        offsets=offsets[wanted],
        timestamps=timestamps[wanted],
        timestamp_types=is_append[wanted].astype(numpy.int64),
        headers=headers,
    )


def of(sections: Sequence[Section], name: str) -> Places:
    return numpy.array([getattr(section, name) for section in sections], dtype=numpy.int64)


def record_ends(sections: Sequence[Section], joined: bytes) -> Places:
    """Return the end of each record, where the length of the next one begins."""
    ends: list[int] = []
    position = limit = 0
    for section in sections:
        limit += len(section.data)
        for _ in range(section.record_count):
            # The only Python loop over records. A valid length is even, since zigzag makes negative
            # ones odd; nearly all have one or two bytes, since records are shorter than 8 KiB.
            size = joined[position]
            if not size & 0x81:
                position += 1 + (size >> 1)
            elif not size & 1 and (byte := joined[position + 1]) < 0x80:
                position += 2 + ((size & 0x7F | byte << 7) >> 1)
            else:
                position = end_of_large(joined, position)
            if position > limit:
                raise CorruptBatch(wrong(section, "is longer than the rest"))
            ends.append(position)
        if position != limit:
            raise CorruptBatch(wrong(section, f"leaves {limit - position} bytes"))
    return numpy.array(ends, dtype=numpy.int64)


def begins(ends: Places) -> Places:
    return numpy.concatenate([numpy.zeros(1, dtype=numpy.int64), ends])[: len(ends)]


def end_of_large(joined: bytes, position: int) -> int:
    """Return the end of a record with a length of any size; the end of the buffer if invalid."""
    size = 0
    for place in range(VARINT_BYTES):
        byte = joined[position + place]
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return len(joined) if size & 1 else position + place + 1 + (size >> 1)
    return len(joined)


def wrong(section: Section, what: str) -> str:
    return f"the batch at offset {section.base_offset}: a record, of {section.record_count}, {what}"


class Scan:
    """Reads many records at once, field by field."""

    def __init__(self, data: Bytes, starts: Places, ends: Places) -> None:
        self._bytes = data
        self._at = starts
        self._ends = ends

    def part(self, which: Places) -> "Scan":
        """Return a scan of some of the records from this position."""
        return Scan(self._bytes, self._at[which], self._ends[which])

    def skip(self, sizes: int | Places) -> None:
        self._at = self._at + sizes
        self._require_inside()

    def varints(self, most_bytes: int = VARINT_BYTES) -> Places:
        """Read a signed varint of each record."""
        found = self._bytes[self._at].astype(numpy.uint64)
        at = self._at + 1
        values = found & numpy.uint64(0x7F)
        going = numpy.flatnonzero(found >= 0x80)
        for place in range(1, most_bytes):
            if not len(going):
                break
            byte = self._bytes[at[going]].astype(numpy.uint64)
            at[going] += 1
            values[going] |= (byte & numpy.uint64(0x7F)) << numpy.uint64(7 * place)
            going = going[byte >= 0x80]
        if len(going):
            raise CorruptBatch(f"a record has a number of more than {most_bytes} bytes")
        self._at = at
        self._require_inside()
        signed: Places = (values >> numpy.uint64(1)).astype(numpy.int64)
        return signed ^ -(values & numpy.uint64(1)).astype(numpy.int64)

    def field(self) -> tuple[Places, Places, Mask]:
        """Skip byte fields; return their begins and ends, and which are null."""
        sizes = self.varints()
        nulls: Mask = sizes == -1
        if (sizes < -1).any():
            raise CorruptBatch("a record has a field of a length below -1")
        starts = self._at
        self.skip(numpy.where(nulls, 0, sizes))
        return starts, self._at, nulls

    def _require_inside(self) -> None:
        # Positions grow by fields of at most 2 GiB, and this check comes before any read.
        if (self._at > self._ends).any():
            raise CorruptBatch("a record has a field beyond its end")


def gathered(
    buffer: pyarrow.Buffer, starts: Places, ends: Places, nulls: Mask, wanted: Places
) -> pyarrow.Array:
    """Copy the fields of the wanted records into a new array."""
    if not len(wanted):
        return pyarrow.array([], pyarrow.binary())
    turns = numpy.empty(2 * len(starts), dtype=numpy.int32)
    turns[0::2] = starts
    turns[1::2] = ends
    both = pyarrow.Array.from_buffers(
        pyarrow.binary(), len(turns) - 1, [None, pyarrow.py_buffer(turns), buffer]
    )
    gone = nulls[wanted]
    return both.take(pyarrow.array(2 * wanted, mask=gone if gone.any() else None))


def decode_headers(scan: Scan, buffer: pyarrow.Buffer, wanted: Places) -> pyarrow.Array:
    """Return the headers of each wanted record; null without headers, as in Spark's own source."""
    inner = scan.part(wanted)
    counts = inner.varints()
    if (counts < 0).any():
        raise CorruptBatch("a record has a negative number of headers")
    rounds = list(header_rounds(inner, counts))
    if not rounds:
        return pyarrow.nulls(len(wanted), HEADERS)
    owners, numbers, *fields = (numpy.concatenate(part) for part in zip(*rounds, strict=True))
    order = numpy.lexsort((numbers, owners))
    key_starts, key_ends, key_nulls, starts, ends, nulls = (part[order] for part in fields)
    if key_nulls.any():
        raise CorruptBatch("a header has no key")
    every = numpy.arange(len(order))
    keys = texts(gathered(buffer, key_starts, key_ends, key_nulls, every))
    values = gathered(buffer, starts, ends, nulls, every)
    pairs = pyarrow.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    bounds = numpy.concatenate([[0], numpy.cumsum(counts)]).astype(numpy.int32)
    return pyarrow.ListArray.from_arrays(
        pyarrow.array(bounds), pairs, type=HEADERS, mask=pyarrow.array(counts == 0)
    )


def header_rounds(scan: Scan, counts: Places) -> Iterator[tuple[Any, ...]]:
    """Read the first header of all records with one, then the second, and so on."""
    owners = numpy.flatnonzero(counts)
    rest = scan.part(owners)
    number = 0
    while len(owners):
        yield owners, numpy.full(len(owners), number), *rest.field(), *rest.field()
        number += 1
        on = numpy.flatnonzero(counts[owners] > number)
        rest, owners = rest.part(on), owners[on]


def texts(keys: pyarrow.Array) -> pyarrow.Array:
    """Decode keys as UTF-8; invalid bytes become the replacement character, as in Java."""
    try:
        return keys.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        shown = [str(key, "utf-8", "replace") for key in keys.to_pylist()]
        return pyarrow.array(shown, pyarrow.string())
