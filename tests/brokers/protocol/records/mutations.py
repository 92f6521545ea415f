"""Batches that lie: a valid batch goes in, one of its many broken relatives comes out.

Structure-aware: numbers are replaced where numbers stand, records are moved whole, packed bodies
are unpacked, changed and packed again, and length and CRC are mostly made right afterwards, so that
the lie reaches the code it is meant for instead of ending at the checksum. `mutate` draws all from
the generator given, so a seed repeats a run.
"""

import itertools
from collections.abc import Callable
from random import Random

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, read_batch
from brokers.protocol.records.builder import varint
from brokers.protocol.records.compression import Compression, compress, decompress
from tests.brokers.protocol.records.samples import FIELDS, seal

MAX_BODY = 2**20
MAX_ROUNDS = 3
INT_LIMITS = {8: 2**63, 4: 2**31, 2: 2**15, 1: 2**7}
WIDTHS = dict(zip(FIELDS, (8, 4, 4, 1, 4, 2, 4, 8, 8, 8, 2, 4, 4), strict=True))
# Fields whose lie would stop a batch at its first check; they are lied about now and then only.
GATES = {"length", "magic", "crc", "base_offset"}

EVIL_NUMBERS = (
    *(varint(value) for value in (-1, -2, 0, 1, 2, 63, 64, 2**14, 2**31 - 1, 2**31, -(2**31))),
    *(varint(value) for value in (2**40, 2**63 - 1, -(2**63))),
    b"\xff" * 9 + b"\x7f",  # more than 64 bits
    b"\xff" * 12 + b"\x00",  # more than ten bytes
    b"\x80" * 9 + b"\x00",  # ten bytes that say 0
    b"\x80" * 30,
    b"",
)

Mutation = Callable[[Random, bytearray], bytearray]


def mutate(rng: Random, valid_batch: bytes) -> bytes:
    """Break a batch in one to three ways; now and then it comes out whole."""
    batch = bytearray(valid_batch)
    for _ in range(rng.randint(1, MAX_ROUNDS)):
        if len(batch) <= HEADER_SIZE:
            break
        batch = rng.choice(MUTATIONS)(rng, batch)
    return bytes(batch)


def lie_in_header(rng: Random, batch: bytearray) -> bytearray:
    name = rng.choice(FIELDS)
    if name in GATES and rng.random() < 0.8:
        name = "record_count"
    limit = INT_LIMITS[WIDTHS[name]]
    near = rng.choice((0, 1, -1, 2, limit - 1, -limit, rng.randrange(-limit, limit)))
    return seal(batch, None, **{name: near & 0xFFFFFFFF if name == "crc" else near})


def lie_in_attributes(rng: Random, batch: bytearray) -> bytearray:
    """Another codec than the body's, a control bit, a horizon."""
    return seal(batch, attributes=rng.randrange(0x80))


def lie_in_number(rng: Random, batch: bytearray) -> bytearray:
    """Replace one varint of one record, and half of the time correct the record's length for it."""

    def change(body: bytes) -> bytes:
        rows = whole_records(body)
        if not rows:
            return body
        index = rng.randrange(len(rows))
        row = rows[index]
        (_, content), *others = spans = numbers_of(row)
        start, end = rng.choice(spans)
        changed = row[:start] + rng.choice(EVIL_NUMBERS) + row[end:]
        if start and others and rng.random() < 0.5:
            changed = varint(len(changed) - content) + changed[content:]
        rows[index] = changed
        return b"".join(rows)

    return with_body(batch, change)


def move_records(rng: Random, batch: bytearray) -> bytearray:
    """Drop, double or swap whole records while the header's count stays."""

    def change(body: bytes) -> bytes:
        rows = whole_records(body)
        if not rows:
            return body
        index = rng.randrange(len(rows))
        kind = rng.randrange(3)
        if kind == 0:
            del rows[index]
        elif kind == 1:
            rows.insert(rng.randrange(len(rows)), rows[index])
        else:
            rng.shuffle(rows)
        return b"".join(rows)

    return with_body(batch, change)


def flip_bits(rng: Random, batch: bytearray) -> bytearray:
    return with_body(batch, lambda body: flipped(rng, body))


def cut_or_grow(rng: Random, batch: bytearray) -> bytearray:
    return with_body(batch, lambda body: resized(rng, body))


def splice(rng: Random, batch: bytearray) -> bytearray:
    """Copy a stretch of the body over another place."""

    def change(body: bytes) -> bytes:
        if not body:
            return body
        start, target = rng.randrange(len(body)), rng.randrange(len(body))
        piece = body[start : start + rng.randint(1, 40)]
        return body[:target] + piece + body[target + rng.randint(0, 40) :]

    return with_body(batch, change)


def break_packing(rng: Random, batch: bytearray) -> bytearray:
    """Damage the packed body itself: bits, ends, a second frame, foreign bytes."""
    body = bytes(batch[HEADER_SIZE:])
    kind = rng.randrange(4)
    if kind == 0:
        body = flipped(rng, body)
    elif kind == 1:
        body = resized(rng, body)
    elif kind == 2:
        body += body
    else:
        body = compress(rng.choice(list(Compression)), body)
    return seal(batch, body)


def damage_unsealed(rng: Random, batch: bytearray) -> bytearray:
    """Damage as a disk or a wire does it: nothing is made right afterwards."""
    if rng.random() < 0.5:
        return bytearray(flipped(rng, bytes(batch)))
    return batch[: rng.randrange(len(batch))]


MUTATIONS: tuple[Mutation, ...] = (
    lie_in_header,
    lie_in_attributes,
    lie_in_number,
    lie_in_number,
    lie_in_number,
    move_records,
    flip_bits,
    cut_or_grow,
    splice,
    break_packing,
    damage_unsealed,
)


def with_body(batch: bytearray, change: Callable[[bytes], bytes]) -> bytearray:
    """Change the unpacked records; a body that no longer unpacks is changed as it is."""
    try:
        view = read_batch(memoryview(batch))
        codec = view.compression
        body = decompress(codec, view.body, max_bytes=MAX_BODY)
    except KafkaError:
        return seal(batch, change(bytes(batch[HEADER_SIZE:])))
    return seal(batch, compress(codec, change(body)))


def flipped(rng: Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if damaged:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def resized(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.5:
        return data[: rng.randrange(len(data) + 1)]
    return data + rng.randbytes(rng.randint(1, 30))


def whole_records(body: bytes) -> list[bytes]:
    """Cut a body into records by their lengths, as far as these lead."""
    rows, at = [], 0
    while at < len(body):
        length, content = read_number(body, at)
        end = content + max(length, 0)
        rows.append(body[at:end])
        at = end
    return rows


def numbers_of(row: bytes) -> list[tuple[int, int]]:
    """Find every number of one record, its length first."""
    _, at = read_number(row, 0)
    spans = [(0, at)]
    at += 1  # attributes
    # Both deltas, then lengths with their bytes: key, value; the header count; more lengths.
    for index in itertools.count():
        if at >= len(row):
            return spans
        start = at
        number, at = read_number(row, start)
        spans.append((start, at))
        at += max(number, 0) if index not in {0, 1, 4} else 0
    return spans


def read_number(body: bytes, at: int) -> tuple[int, int]:
    """Read a zigzag varint without distrust; a cut one ends with the body."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), at
