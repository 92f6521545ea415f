"""Frames that lie: whole requests and responses, broken where it hurts.

Structure-aware: lengths are replaced where lengths stand, texts stop being UTF-8, tags appear and
double, pieces are moved and lost. Everything is drawn from the generator given, so that a seed
repeats a run.
"""

import struct
from collections.abc import Callable
from random import Random
from typing import Any

from brokers.protocol.apis import APIS
from brokers.protocol.records.compression import Compression
from brokers.protocol.schema import Field, Kind, Message
from tests.brokers.protocol.records.mutations import mutate as mutate_batch
from tests.brokers.protocol.records.samples import build
from tests.fuzz.layout import Part, Piece, joined, varint
from tests.oracles.strategies import CORNERS, RANGES, corner, replaced

API_VERSIONS_KEY = 18
MAX_ROUNDS = 3
BAD_UTF8 = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\x80")
# Whatever a reader of varints may trip over.
EVIL_VARINTS = (
    b"",
    b"\x80",
    b"\x00",
    b"\x7f",
    b"\x80\x00",  # zero, the long way
    varint(1 << 15),
    varint(1 << 20),
    varint((1 << 31) - 1),
    varint(1 << 31),
    varint((1 << 32) - 1),
    varint(1 << 32),
    b"\xff" * 9 + b"\x01",  # ten bytes
    b"\x80" * 30,
)
BATCHES = tuple(bytes(build(compression=codec)) for codec in Compression)

Change = Callable[[Random, list[Piece], int], None]


# -- values --------------------------------------------------------------------------------------


def drawn(rng: Random, message: type[Message], version: int) -> Message:
    """Draw a value: the shape of one of the corners, with other numbers, texts and batches."""

    def change(field: Field, found: Any) -> Any:
        return _leaf(rng, field.element if field.kind is Kind.ARRAY else field.kind)

    return replaced(corner(message, version, rng.choice(CORNERS)), version, change)


def _leaf(rng: Random, kind: Any) -> Any:
    if kind in RANGES:
        low, high = RANGES[kind]
        return rng.choice((low, 0, 1, high, rng.randint(low, high)))
    match kind:
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.FLOAT64:
            return rng.uniform(-1e9, 1e9)
        case Kind.UUID:
            return rng.randbytes(16)
        case Kind.STRING:
            return "ž" * rng.choice((0, 1, 1, 5, 63, 64, 200))
        case Kind.BYTES:
            return rng.randbytes(rng.choice((0, 1, 7, 126, 127, 300)))
    whole = rng.choice(BATCHES)
    return memoryview(mutate_batch(rng, whole) if rng.random() < 0.8 else whole)


# -- mutations -----------------------------------------------------------------------------------


def broken(rng: Random, pieces: list[Piece]) -> bytes:
    """Break a message in one to three places; now and then it comes out whole."""
    pieces = list(pieces)
    for _ in range(rng.randint(1, MAX_ROUNDS)):
        if pieces:
            index = rng.randrange(len(pieces))
            change = rng.choice(CHANGES[pieces[index].part] + ANYWHERE)
            change(rng, pieces, index)
    return joined(pieces)


def lie_in_length(rng: Random, pieces: list[Piece], index: int) -> None:
    piece = pieces[index]
    if piece.form == "varint" and rng.random() < 0.6:
        pieces[index] = piece.saying(rng.choice(EVIL_VARINTS))
        return
    # Varints hold no negative length but -1.
    lows = (-1, 0, 1) if piece.form == "varint" else (-2, -1, 0, 1, -(1 << 15))
    length = rng.choice((*lows, 2, 3, 127, 128, (1 << 15) - 1, rng.randrange(300)))
    if piece.form != "h" and rng.random() < 0.3:
        length = (1 << 31) - 1
    pieces[index] = piece.measuring(length)


def break_text(rng: Random, pieces: list[Piece], index: int) -> None:
    """Put in what is not UTF-8, with the length before it made right."""
    text = bytearray(pieces[index].data)
    place = rng.randint(0, len(text))
    text[place:place] = rng.choice(BAD_UTF8)
    resize(pieces, index, bytes(text))


def stretch(rng: Random, pieces: list[Piece], index: int) -> None:
    resize(pieces, index, rng.randbytes(rng.choice((0, 1, 130, 1_000))))


def resize(pieces: list[Piece], index: int, data: bytes) -> None:
    pieces[index] = pieces[index].saying(data)
    if index and pieces[index - 1].part is Part.LENGTH:
        pieces[index - 1] = pieces[index - 1].measuring(len(data))


def scramble(rng: Random, pieces: list[Piece], index: int) -> None:
    piece = pieces[index]
    data = rng.choice((bytes(len(piece.data)), b"\xff" * len(piece.data), b""))
    pieces[index] = pieces[index].saying(data or rng.randbytes(len(piece.data)))


def add_tags(rng: Random, pieces: list[Piece], index: int) -> None:
    """Declare more tagged fields; mostly bring them too, unknown, doubled or lying."""
    (count, *_) = pieces[index].data or b"\0"
    more = rng.choice((1, 1, 1, 2, 127, 128))
    pieces[index] = pieces[index].saying(varint(count + more))
    for _ in range(more if rng.random() < 0.8 else 0):
        tag = rng.choice((0, 1, 2, 3, 31, 10_000, (1 << 32) - 1))
        data = rng.randbytes(rng.choice((0, 0, 1, 2, 4, 16)))
        size = len(data) if rng.random() < 0.8 else rng.randrange(2_000)
        field = varint(tag) + varint(size) + data
        pieces.insert(index + 1, Piece(Part.DATA, field))


def evil_varint(rng: Random, pieces: list[Piece], index: int) -> None:
    pieces[index] = pieces[index].saying(rng.choice(EVIL_VARINTS))


def lie_in_size(rng: Random, pieces: list[Piece], index: int) -> None:
    (size, *_) = pieces[index].data or b"\0"
    pieces[index] = pieces[index].saying(varint(max(0, size + rng.choice((-1, 1, -size, 7)))))


def flip_marker(rng: Random, pieces: list[Piece], index: int) -> None:
    pieces[index] = pieces[index].saying(rng.choice((b"\xff", b"\0", b"\1", b"\x7f", b"\x80")))


def lose(rng: Random, pieces: list[Piece], index: int) -> None:
    del pieces[index]


def double(rng: Random, pieces: list[Piece], index: int) -> None:
    pieces.insert(rng.randrange(len(pieces)), pieces[index])


def swap(rng: Random, pieces: list[Piece], index: int) -> None:
    other = rng.randrange(len(pieces))
    pieces[index], pieces[other] = pieces[other], pieces[index]


def cut(rng: Random, pieces: list[Piece], index: int) -> None:
    del pieces[index + 1 :]
    data = pieces[index].data
    pieces[index] = pieces[index].saying(data[: rng.randint(0, len(data))])


def grow(rng: Random, pieces: list[Piece], index: int) -> None:
    pieces.append(Piece(Part.DATA, rng.randbytes(rng.choice((1, 2, 50)))))


def flip_bit(rng: Random, pieces: list[Piece], index: int) -> None:
    data = bytearray(pieces[index].data)
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    pieces[index] = pieces[index].saying(bytes(data))


ANYWHERE: tuple[Change, ...] = (lose, double, swap, cut, grow, flip_bit)
CHANGES: dict[Part, tuple[Change, ...]] = {
    Part.NUMBER: (scramble, scramble, flip_bit),
    # Twice as often as the rest: here the memory is decided.
    Part.LENGTH: (lie_in_length,) * 12,
    Part.COUNT: (lie_in_length,) * 12,
    Part.TEXT: (break_text,) * 4 + (stretch,),
    Part.DATA: (stretch,) * 2,
    Part.MARKER: (flip_marker,) * 6,
    Part.TAGS: (add_tags,) * 8 + (evil_varint,) * 4,
    Part.TAG: (evil_varint,) * 4,
    Part.SIZE: (lie_in_size,) * 6 + (evil_varint,) * 4,
}


# -- frames --------------------------------------------------------------------------------------


def request_frame(rng: Random, message: type[Message], version: int, body: bytes) -> bytes:
    """Put a request's header before a body. One in ten headers lies too."""
    assert message.KEY is not None
    client_id = rng.choice((b"alice", b"", "žluťoučký".encode(), b"x" * 300))
    length = len(client_id)
    if rng.random() < 0.05:
        client_id, length = b"", -1
    tags = b""
    if APIS[message.KEY].is_flexible(version):
        tags = b"\0" if rng.random() < 0.8 else b"\2\5\1x\x09\0"  # two that nobody knows
    head = struct.pack(">hhih", message.KEY, version, rng.getrandbits(31), length)
    header = bytearray(head + client_id + tags)
    if rng.random() < 0.1:
        header[rng.randrange(len(header))] = rng.randrange(256)
    return bytes(header) + body
