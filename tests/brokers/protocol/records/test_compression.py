"""Every codec reads what the libraries of other clients write, and stops at its cap."""

import gzip
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from operator import attrgetter

import cramjam
import lz4.frame
import pytest
import zstandard

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.compression import (
    MAX_BLOCKS,
    MAX_FRAMES,
    MIN_BLOCK_SHARE,
    OUTPUT_STEP,
    XERIAL_MAGIC,
    ZSTD_TUNED_BYTES,
    Compression,
    compress,
    decompress,
)

PACKED = [codec for codec in Compression if codec is not Compression.NONE]
FRAMED = [Compression.GZIP, Compression.LZ4, Compression.ZSTD]
NAME = attrgetter("name")
MIB = 2**20
TEXT = b"".join(b'{"id":%d,"name":"samsa"}' % number for number in range(20_000))
NOISE = random.Random(7).randbytes(300_000)
ZSTD_HEADER = b"\x28\xb5\x2f\xfd\x00\x50"  # no content size, window of 1 MiB


def unpack(codec: Compression, data: bytes | bytearray, max_bytes: int = MIB) -> bytes:
    return decompress(codec, data, max_bytes=max_bytes)


def refusal(codec: Compression, data: bytes, max_bytes: int = MIB) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        unpack(codec, data, max_bytes)
    return caught.value.code


def zstd_block(kind: int, size: int, content: bytes, *, is_last: bool) -> bytes:
    return (size << 3 | kind << 1 | is_last).to_bytes(3, "little") + content


def test_the_tables_of_a_zstd_encoder_do_not_grow_with_a_bomb() -> None:
    data = bytes(ZSTD_TUNED_BYTES + 1)

    packed = compress(Compression.ZSTD, data, 22)

    assert zstandard.get_frame_parameters(packed).window_size <= ZSTD_TUNED_BYTES
    assert unpack(Compression.ZSTD, packed, max_bytes=len(data)) == data


@pytest.mark.parametrize("codec", Compression, ids=NAME)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE], ids=["empty", "byte", "text", "noise"])
def test_what_is_packed_unpacks_to_the_same(codec: Compression, data: bytes) -> None:
    packed = compress(codec, data)

    assert unpack(codec, packed) == data
    assert unpack(codec, bytearray(packed), max_bytes=len(data)) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, (1, 2, 3, 9)),
        (Compression.LZ4, (1, 9, 17)),
        (Compression.ZSTD, (-5, 3, 12)),
    ],
)
def test_levels_of_the_topic_are_honoured(codec: Compression, levels: tuple[int, ...]) -> None:
    packed = [compress(codec, TEXT, level) for level in levels]

    assert all(unpack(codec, data) == TEXT for data in packed)
    assert len(packed[-1]) < len(packed[0])


def test_our_frames_are_those_that_java_reads() -> None:
    """Java knows no dependent blocks in LZ4 and only its own container around snappy."""
    lz4_frame = compress(Compression.LZ4, TEXT)
    snappy = compress(Compression.SNAPPY, TEXT)

    info = lz4.frame.get_frame_info(lz4_frame)
    assert not info["block_linked"]
    assert (info["block_size"], info["content_checksum"], info["content_size"]) == (65536, False, 0)
    assert snappy[:16] == XERIAL_MAGIC + struct.pack(">ii", 1, 1)
    assert gzip.decompress(compress(Compression.GZIP, TEXT)) == TEXT


def test_what_other_writers_make_of_the_formats_is_read() -> None:
    zstd_stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    streamed = b"".join(
        zstd_stream.compress(TEXT[start : start + 999])
        + zstd_stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for start in range(0, len(TEXT), 999)
    )
    linked = lz4.frame.compress(TEXT, block_linked=True, content_checksum=True, store_size=True)

    assert unpack(Compression.ZSTD, streamed + zstd_stream.flush()) == TEXT
    assert unpack(Compression.LZ4, linked) == TEXT
    assert unpack(Compression.GZIP, zlib.compress(TEXT, 9, wbits=31)) == TEXT
    assert unpack(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def lz4_writer(block_size: int, *, is_linked: bool) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        packed: bytes = lz4.frame.compress(data, block_size=block_size, block_linked=is_linked)
        return packed

    return pack


def xerial(*blocks: bytes) -> bytes:
    packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    lengths = [struct.pack(">i", len(block)) for block in packed]
    return compress(Compression.SNAPPY, b"") + b"".join(map(bytes.__add__, lengths, packed))


def xerial_writer(block_size: int) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        starts = range(0, len(data), block_size)
        return xerial(*(data[start : start + block_size] for start in starts))

    return pack


WRITERS: dict[str, tuple[Compression, Callable[[bytes], bytes]]] = {
    **{
        f"lz4-{1 << 2 * size + 8}-{is_linked}": (
            Compression.LZ4,
            lz4_writer(size, is_linked=is_linked),
        )
        for size in (4, 5, 6, 7)  # 64 KiB to 4 MiB, in the numbers of the frame
        for is_linked in (False, True)
    },
    **{
        f"gzip-{level}": (Compression.GZIP, lambda data, n=level: zlib.compress(data, n, wbits=31))  # type: ignore[misc]
        for level in (0, 1)
    },
    **{f"xerial-{size}": (Compression.SNAPPY, xerial_writer(size)) for size in (2**12, 2**15, MIB)},
    "snappy": (Compression.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    **{
        f"zstd-{level}": (Compression.ZSTD, zstandard.ZstdCompressor(level=level).compress)
        for level in (-5, 1)
    },
    **{
        f"ours-{codec.name}": (codec, lambda data, codec=codec: compress(codec, data))  # type: ignore[misc]
        for codec in PACKED
    },
}
LARGE_NOISE = random.Random(8).randbytes(5 * MIB)
CONTENTS = {
    "repeats": (TEXT * 11)[: 5 * MIB],
    # Six letters without order: packed to two fifths, as real records are.
    "letters": LARGE_NOISE.translate(bytes(97 + byte % 6 for byte in range(256))),
    "noise": LARGE_NOISE,
}


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("content", CONTENTS)
def test_bodies_of_whole_steps_are_read(writer: str, content: str) -> None:
    """A step of output may end with a block, a frame or the input, and nothing is lost there."""
    codec, pack = WRITERS[writer]
    for size in (MIB, 2 * MIB, 2 * MIB + 1, 5 * MIB):
        data = CONTENTS[content][:size]

        assert unpack(codec, pack(data), max_bytes=size) == data


def most_blocks(packed: int, cap: int = MIB) -> int:
    return MAX_BLOCKS + packed // MIN_BLOCK_SHARE + cap // 2**17


def zstd_of_tiny_blocks(count: int) -> bytes:
    tiny = zstd_block(0, 1, b"x", is_last=False)
    return ZSTD_HEADER + tiny * (count - 1) + zstd_block(0, 1, b"x", is_last=True)


TINY_BLOCKS: dict[Compression, Callable[[int], bytes]] = {
    # The header of a stream counts as a block.
    Compression.SNAPPY: lambda count: xerial(*[b"x"] * (count - 1)),
    Compression.ZSTD: zstd_of_tiny_blocks,
}


@pytest.mark.parametrize("codec", TINY_BLOCKS, ids=NAME)
def test_a_body_of_countless_tiny_blocks_is_refused(codec: Compression) -> None:
    pack = TINY_BLOCKS[codec]
    most = next(n for n in range(MAX_BLOCKS, 2 * MAX_BLOCKS) if n + 1 > most_blocks(len(pack(n))))

    assert unpack(codec, pack(most)).strip(b"x") == b""
    with pytest.raises(KafkaError, match=f"limit of {most_blocks(len(pack(most + 1)))} blocks"):
        unpack(codec, pack(most + 1))


def test_a_body_of_countless_xerial_headers_is_refused() -> None:
    header = compress(Compression.SNAPPY, b"")

    assert refusal(Compression.SNAPPY, header * 2 * MAX_BLOCKS) is ErrorCode.CORRUPT_MESSAGE


def test_a_xerial_block_of_nothing_is_corrupt() -> None:
    assert refusal(Compression.SNAPPY, xerial(b"x", b"", b"x")) is ErrorCode.CORRUPT_MESSAGE


def test_full_blocks_are_bounded_by_the_cap_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The densest zstd has four bytes for a full block, which the body's size says nothing of."""
    monkeypatch.setattr("brokers.protocol.records.compression.MAX_BLOCKS", 1)
    full = zstd_block(1, 2**17, b"x", is_last=False)
    body = ZSTD_HEADER + full * 32 + zstd_block(0, 0, b"", is_last=True)

    assert unpack(Compression.ZSTD, body, 4 * MIB) == b"x" * 4 * MIB


def test_small_pieces_take_no_more_than_twice_what_they_hold() -> None:
    body = xerial(*[NOISE[:100]] * 1500)

    with bounded_memory(int(2.3 * 150_000)):
        unpacked = unpack(Compression.SNAPPY, body)

    assert unpacked == NOISE[:100] * 1500


@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_several_frames_in_one_body_are_all_read(codec: Compression) -> None:
    body = compress(codec, TEXT) + compress(codec, b"") + compress(codec, NOISE)

    assert unpack(codec, body) == TEXT + NOISE


@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_the_cap_counts_all_frames_together(codec: Compression) -> None:
    body = compress(codec, TEXT) * 3

    assert unpack(codec, body, max_bytes=3 * len(TEXT)) == TEXT * 3
    assert refusal(codec, body, 3 * len(TEXT) - 1) is ErrorCode.MESSAGE_TOO_LARGE


def test_an_unpacked_body_obeys_the_cap_too() -> None:
    assert refusal(Compression.NONE, b"four", 3) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_a_body_cut_at_any_byte_is_corrupt(codec: Compression) -> None:
    body = compress(codec, TEXT[:40] + NOISE[:40])
    # A xerial stream may end after any block, so also after its header.
    whole = {16} if codec is Compression.SNAPPY else set()

    for length in set(range(len(body))) - whole:
        assert refusal(codec, body[:length]) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_bytes_after_the_last_frame_are_corrupt(codec: Compression) -> None:
    body = compress(codec, TEXT)

    for garbage in (b"\x00", b"garbage that goes on for a while", bytes(64)):
        assert refusal(codec, body + garbage) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_damaged_bodies_end_in_a_typed_error_or_as_something_else(codec: Compression) -> None:
    chance = random.Random(codec)
    for _ in range(400):
        body = bytearray(compress(codec, TEXT[:2000]))
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        with suppress(KafkaError):
            unpack(codec, bytes(body))


@pytest.mark.parametrize("codec", FRAMED, ids=NAME)
def test_a_body_of_countless_tiny_frames_is_refused(codec: Compression) -> None:
    frame = compress(codec, b"")

    assert unpack(codec, frame * MAX_FRAMES) == b""
    assert refusal(codec, frame * (MAX_FRAMES + 1)) is ErrorCode.CORRUPT_MESSAGE


def gzip_bomb() -> bytes:
    # A flush ends on a whole byte, so 16 MiB of zeros may be said again and again: 1 MiB is 1 GiB,
    # the densest that deflate knows.
    packer = zlib.compressobj(9, wbits=-15)
    zeros = packer.compress(bytes(16 * MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + zeros * 64


def lz4_bomb() -> bytes:
    # Blocks of 4 MiB, each one match that repeats itself: 255 to 1.
    return lz4.frame.compress(bytes(256 * MIB), block_size=lz4.frame.BLOCKSIZE_MAX4MB)


def zstd_bomb() -> bytes:
    # Four bytes that say 128 KiB, again and again: 1 MiB of them is 32 GiB.
    block = zstd_block(1, 2**17, b"\x00", is_last=False)
    return ZSTD_HEADER + block * (MIB // len(block)) + zstd_block(1, 1, b"\x00", is_last=True)


def snappy_bomb() -> bytes:
    blocks = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    return compress(Compression.SNAPPY, b"") + (struct.pack(">i", len(blocks)) + blocks) * 256


BOMBS = {
    Compression.GZIP: gzip_bomb,
    Compression.LZ4: lz4_bomb,
    Compression.ZSTD: zstd_bomb,
    Compression.SNAPPY: snappy_bomb,
}


@contextmanager
def bounded_memory(limit: int) -> Iterator[None]:
    """Bound what Python allocates; the resident size is looked at by the next test."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= limit
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_a_bomb_ends_at_the_cap_in_bounded_memory(codec: Compression) -> None:
    bomb = BOMBS[codec]()
    cap = 8 * MIB

    with bounded_memory(cap + 3 * OUTPUT_STEP):
        assert refusal(codec, bomb, cap) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.alone
@pytest.mark.parametrize("codec", PACKED, ids=NAME)
def test_a_bomb_leaves_the_resident_size_near_the_cap(codec: Compression) -> None:
    """Codecs allocate outside of Python too; the kernel's high-water mark sees everything."""
    bomb = BOMBS[codec]()
    cap = 8 * MIB

    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    before = resident_peak()
    assert refusal(codec, bomb, cap) is ErrorCode.MESSAGE_TOO_LARGE

    # The cap, a step, the window or the blocks of the codec, and what malloc keeps.
    assert resident_peak() - before <= cap + 16 * MIB


def resident_peak() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def test_steps_are_small_whatever_the_blocks_say() -> None:
    """Blocks of three kinds in one frame, over more than one step."""
    parts = [
        zstd_block(1, 2**17, b"r", is_last=False) * 9,
        zstd_block(0, 3, b"raw", is_last=False),
        zstd_block(0, 0, b"", is_last=True),
    ]

    assert unpack(Compression.ZSTD, ZSTD_HEADER + b"".join(parts), 2 * MIB) == (
        b"r" * 9 * 2**17 + b"raw"
    )


@pytest.mark.parametrize(
    "frame",
    [
        ZSTD_HEADER + zstd_block(3, 1, b"x", is_last=True),
        ZSTD_HEADER + zstd_block(1, 2**17 + 1, b"x", is_last=True),
        ZSTD_HEADER + zstd_block(2, 5, b"junk!", is_last=True),
        b"\x28\xb5\x2f\xfd\x00\xa0" + zstd_block(0, 0, b"", is_last=True),  # window of 1 GiB
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + compress(Compression.ZSTD, b"x"),
    ],
    ids=["reserved", "large", "junk", "window", "skippable"],
)
def test_zstd_frames_out_of_the_ordinary_are_corrupt(frame: bytes) -> None:
    assert refusal(Compression.ZSTD, frame) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 9, 2**31 - 1])
def test_a_lying_xerial_block_length_is_corrupt(size: int) -> None:
    body = compress(Compression.SNAPPY, b"") + struct.pack(">i", size) + b"\x00" * 8

    assert refusal(Compression.SNAPPY, body) is ErrorCode.CORRUPT_MESSAGE


def test_a_declared_snappy_length_is_weighed_before_memory_is_taken() -> None:
    """Twelve bytes that declare 900 KB lie; ones that declare 4 GB are over the cap as well."""
    lie, huge = b"\xa0\xf7\x36" + bytes(9), b"\xff\xff\xff\xff\x0f" + bytes(7)

    with bounded_memory(64 * 1024):
        assert refusal(Compression.SNAPPY, lie) is ErrorCode.CORRUPT_MESSAGE
        assert refusal(Compression.SNAPPY, huge) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_densest_snappy_is_within_the_ratio() -> None:
    packed = bytes(cramjam.snappy.compress_raw(bytes(MIB)))

    assert unpack(Compression.SNAPPY, packed) == bytes(MIB)


def test_numbers_that_name_no_codec_are_unsupported() -> None:
    assert [Compression.of(number) for number in range(5)] == list(Compression)
    for number in (-1, 5, 6, 7):
        with pytest.raises(KafkaError) as caught:
            Compression.of(number)
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_codec_numbers_follow_each_other() -> None:
    assert all(later - earlier == 1 for earlier, later in pairwise(Compression))
