"""The codecs of record batches, each with a cap on its unpacked size.

Knows nothing of records. Client data may be a bomb (1 MiB of zstd can unpack to 32 GiB) or several
concatenated frames, so every codec runs in steps of at most 1 MiB of output, reads all frames of a
body, counts them under one cap, and treats a cut or trailing byte as corruption. Frames and blocks
that this module steps through are counted as well, since each costs time whatever it holds. Peak
memory is twice the unpacked size, for the pieces and then the joined result, plus the codec's own.
"""

import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, Protocol

import cramjam
import lz4.frame
import zstandard
from isal import igzip_lib

from brokers.protocol.errors import ErrorCode, KafkaError

# Output of one call into a codec, and so the most by which a cap is exceeded.
OUTPUT_STEP: Final = 2**20
# Input of one call: codecs copy the unread rest of their input, which must not be a megabyte for
# each of many small frames.
INPUT_STEP: Final = 2**16
# Clients write one frame. Opening a frame costs microseconds, so their number is limited.
MAX_FRAMES: Final = 1024
# The same for a block that is stepped over here, in a body of snappy or zstd. Besides these a body
# may have one block for each so many of its bytes, which leaves room for a client that flushes a
# block every few records, and one for each full zstd block that the cap allows.
MAX_BLOCKS: Final = 1024
MIN_BLOCK_SHARE: Final = 256
# Smaller pieces are joined as they come: separate objects would take several times their content.
_SMALL_PIECE: Final = 4096

# A zstd block unpacks to at most this much by the format, and the library refuses more.
ZSTD_BLOCK: Final = 2**17
# The largest window of a decoder. 128 MiB is the library's own limit and that of Java clients;
# pages of it are touched only as output fills them, and output is capped.
ZSTD_MAX_WINDOW: Final = 2**27
# The encoder's tables grow with the data, at level 22 to 700 MB for what 64 MiB unpack from. Above
# this size it works with the tables for this size, about 100 MB.
ZSTD_TUNED_BYTES: Final = 2**23
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_RESERVED = 0, 1, 3

# The container of snappy-java: magic, two version numbers, then blocks after their length. No raw
# stream begins like it: read as one, the magic would copy from output that does not exist yet.
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK: Final = 2**15
_INT32 = Struct(">i")
# The densest element of snappy writes 64 bytes from 3: a declared length beyond that is wrong, and
# is refused before memory is allocated for it.
SNAPPY_MAX_RATIO: Final = 22

# isal at this level is ten times as fast as zlib at its default, for 4 % more bytes.
_ISAL_LEVEL: Final = 2
# Above this, a topic prefers small batches to speed, which zlib does better.
_ISAL_MAX_GZIP_LEVEL: Final = 2
_GZIP_WBITS: Final = 31
_ZSTD_LEVEL: Final = 3  # default of the library and of compression.zstd.level

# The errors of each library for invalid input; lz4 has no type of its own.
_BROKEN: Final[tuple[type[Exception], ...]] = (
    igzip_lib.IsalError,  # type: ignore[assignment]  # isal's stub declares an instance
    cramjam.DecompressionError,
    zstandard.ZstdError,
    RuntimeError,
)

Buffer = bytes | bytearray | memoryview


class Compression(IntEnum):
    """Bits 0 to 2 of a batch's attributes; the names are those of `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, number: int) -> "Compression":
        """Return the codec of a number from the wire."""
        try:
            return cls(number)
        except ValueError:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"compression codec {number} is not one of 0 to {LAST_CODEC}",
            ) from None


LAST_CODEC: Final = int(Compression.ZSTD)


class _Frame(Protocol):
    """The common interface of the decompressors of isal, lz4 and the standard library."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: Buffer, max_length: int, /) -> bytes: ...


class _Output:
    """Unpacked pieces under the cap, and the count of their blocks."""

    __slots__ = ("_blocks_left", "_left", "_max_blocks", "_max_bytes", "_pieces")

    def __init__(self, *, packed_bytes: int, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._left = max_bytes
        self._max_blocks = MAX_BLOCKS + packed_bytes // MIN_BLOCK_SHARE + max_bytes // ZSTD_BLOCK
        self._blocks_left = self._max_blocks
        self._pieces: list[Buffer] = []

    def count_block(self) -> None:
        self._blocks_left -= 1
        if self._blocks_left < 0:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"packed records lie in more than the limit of {self._max_blocks} blocks",
            )

    def reserve(self, size: int) -> None:
        """Refuse an output beyond the cap, before it is unpacked."""
        if size > self._left:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"records unpack to more than the limit of {self._max_bytes} bytes",
            )

    def add(self, piece: Buffer) -> None:
        self.reserve(len(piece))
        self._left -= len(piece)
        pieces = self._pieces
        if not pieces or len(piece) >= _SMALL_PIECE:
            pieces.append(piece)
        elif isinstance(pieces[-1], bytearray):
            pieces[-1] += piece
        else:
            pieces.append(bytearray(piece))

    def joined(self) -> bytes:
        return b"".join(self._pieces)

    def joining(self) -> Generator[None, None, bytes | bytearray]:
        """Do the same in steps; releases the pieces on the way."""
        if len(self._pieces) == 1 and isinstance(self._pieces[0], bytes):
            return self._pieces[0]
        whole = bytearray()
        self._pieces.reverse()
        while self._pieces:
            whole += self._pieces.pop()
            yield
        return whole


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """Pack the records of a batch; `level` is that of the topic's `compression.<codec>.level`."""
    return _COMPRESS[codec](data, level)


def decompress(codec: Compression, data: Buffer, *, max_bytes: int) -> bytes:
    """Unpack the records of a batch to at most `max_bytes`."""
    output = _Output(packed_bytes=len(data), max_bytes=max_bytes)
    try:
        for _step in _DECOMPRESS[codec](memoryview(data), output):
            pass
    except _BROKEN as error:
        raise _corrupt(codec, str(error)) from error
    return output.joined()


def decompressing(
    codec: Compression, data: Buffer, *, max_bytes: int
) -> Generator[None, None, bytes | bytearray]:
    """Do `decompress` in steps of OUTPUT_STEP at most, or of one block of snappy.

    The data must not change until the last step.
    """
    output = _Output(packed_bytes=len(data), max_bytes=max_bytes)
    try:
        yield from _DECOMPRESS[codec](memoryview(data), output)
    except _BROKEN as error:
        raise _corrupt(codec, str(error)) from error
    return (yield from output.joining())


def _compress_none(data: Buffer, level: int | None) -> bytes:
    assert level is None
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    if level is None or level <= _ISAL_MAX_GZIP_LEVEL:
        return igzip_lib.compress(data, level or _ISAL_LEVEL, igzip_lib.COMP_GZIP)
    return zlib.compress(data, level, wbits=_GZIP_WBITS)


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    assert level is None
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK])
        parts += _INT32.pack(len(block)), memoryview(block)
    return b"".join(parts)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    # Java's clients write and read only this frame: independent blocks of 64 KiB.
    packed: bytes = lz4.frame.compress(
        data,
        compression_level=level or 0,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    level = _ZSTD_LEVEL if level is None else level
    if len(data) <= ZSTD_TUNED_BYTES:
        return zstandard.ZstdCompressor(level=level).compress(data)
    tuned = zstandard.ZstdCompressionParameters.from_level(
        level, source_size=ZSTD_TUNED_BYTES, write_content_size=True
    )
    return zstandard.ZstdCompressor(compression_params=tuned).compress(data)


def _decompress_none(data: memoryview, output: _Output) -> Iterator[None]:
    output.reserve(len(data))
    for position in range(0, len(data), OUTPUT_STEP):
        if position:
            yield
        output.add(bytes(data[position : position + OUTPUT_STEP]))


def _decompress_gzip(data: memoryview, output: _Output) -> Iterator[None]:
    def open_frame() -> _Frame:
        return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)

    return _inflate(Compression.GZIP, open_frame, data, output)


def _decompress_lz4(data: memoryview, output: _Output) -> Iterator[None]:
    return _inflate(Compression.LZ4, lz4.frame.LZ4FrameDecompressor, data, output)


def _inflate(
    codec: Compression, open_frame: Callable[[], _Frame], data: memoryview, output: _Output
) -> Iterator[None]:
    """Run decompressors with the standard library's interface over all frames of a body."""
    position, end = 0, len(data)
    for _ in range(MAX_FRAMES):
        frame = open_frame()
        while not frame.eof:
            is_hungry = frame.needs_input
            chunk = data[position : position + INPUT_STEP] if is_hungry else b""
            position += len(chunk)
            piece = frame.decompress(chunk, OUTPUT_STEP)
            is_stuck = not chunk and not piece and not frame.eof
            # A call that needed no input may return nothing and then need some: lz4 does so where a
            # step ended together with a block.
            if is_stuck and (is_hungry or not frame.needs_input):
                raise _corrupt(codec, f"cut after {end} bytes")
            output.add(piece)
            yield
        position -= len(frame.unused_data or b"")
        if position == end:
            return
    raise _corrupt(codec, f"more than {MAX_FRAMES} frames")


def _decompress_snappy(data: memoryview, output: _Output) -> Iterator[None]:
    if not _is_xerial(data, 0):
        _add_snappy_block(data, output)
        return
    position, end = 0, len(data)
    while position < end:
        output.count_block()
        if _is_xerial(data, position):
            # Streams may be concatenated; the version numbers are irrelevant for reading.
            position += len(_XERIAL_HEADER)
            continue
        start = position + _INT32.size
        if start > end:
            raise _corrupt(Compression.SNAPPY, f"cut after {end} bytes")
        size = _INT32.unpack_from(data, position)[0]
        if not 0 < size <= end - start:
            raise _corrupt(Compression.SNAPPY, f"block of {size} bytes, {end - start} are left")
        if not _add_snappy_block(data[start : start + size], output):
            raise _corrupt(Compression.SNAPPY, "a block that unpacks to nothing")
        position = start + size
        yield
    if position > end:
        raise _corrupt(Compression.SNAPPY, f"cut after {end} bytes")


def _is_xerial(data: memoryview, position: int) -> bool:
    return bytes(data[position : position + len(XERIAL_MAGIC)]) == XERIAL_MAGIC


def _add_snappy_block(block: memoryview, output: _Output) -> int:
    """Unpack one block and return its size."""
    if not block:
        raise _corrupt(Compression.SNAPPY, "an empty block")
    size = cramjam.snappy.decompress_raw_len(block)
    output.reserve(size)
    if size > SNAPPY_MAX_RATIO * len(block):
        raise _corrupt(Compression.SNAPPY, f"{len(block)} bytes cannot unpack to {size}")
    output.add(memoryview(cramjam.snappy.decompress_raw(block)))
    return size


def _decompress_zstd(data: memoryview, output: _Output) -> Iterator[None]:
    # The library bounds its input, not its output. So the body is cut at the borders of blocks,
    # whose output the format does bound, and fed as many as make one step.
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW)
    position, end = 0, len(data)
    for _ in range(MAX_FRAMES):
        frame = decompressor.decompressobj()
        for stop in _zstd_steps(data, position, output):
            output.add(frame.decompress(data[position:stop]))
            position = stop
            yield
        if not frame.eof:
            raise _corrupt(Compression.ZSTD, f"frame does not end at byte {position} of {end}")
        if position == end:
            return
    raise _corrupt(Compression.ZSTD, f"more than {MAX_FRAMES} frames")


def _zstd_steps(data: memoryview, position: int, output: _Output) -> Iterator[int]:
    """Walk the block headers of one frame and yield the ends of steps; the last one ends it."""
    frame = zstandard.get_frame_parameters(data[position:])
    if frame.window_size > ZSTD_MAX_WINDOW:
        raise _corrupt(Compression.ZSTD, f"window of {frame.window_size} bytes")
    position += zstandard.frame_header_size(data[position:])
    left_in_step, is_last = OUTPUT_STEP, False
    while not is_last:
        output.count_block()
        if len(data) - position < 3:
            raise _corrupt(Compression.ZSTD, f"cut after {len(data)} bytes")
        header = int.from_bytes(data[position : position + 3], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == _ZSTD_RESERVED or size > ZSTD_BLOCK:
            raise _corrupt(Compression.ZSTD, f"block of kind {kind} with {size} bytes")
        unpacked = size if kind in (_ZSTD_RAW, _ZSTD_RLE) else ZSTD_BLOCK
        if unpacked > left_in_step:
            yield position
            left_in_step = OUTPUT_STEP
        left_in_step -= unpacked
        position += 3 + (1 if kind == _ZSTD_RLE else size)
    position += 4 if frame.has_checksum else 0
    if position > len(data):
        raise _corrupt(Compression.ZSTD, f"cut after {len(data)} bytes")
    yield position


def _corrupt(codec: Compression, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{codec.name.lower()} records: {reason}")


_COMPRESS: Mapping[Compression, Callable[[Buffer, int | None], bytes]] = {
    Compression.NONE: _compress_none,
    Compression.GZIP: _compress_gzip,
    Compression.SNAPPY: _compress_snappy,
    Compression.LZ4: _compress_lz4,
    Compression.ZSTD: _compress_zstd,
}

# Each adds to the output, and pauses between two pieces.
_DECOMPRESS: Mapping[Compression, Callable[[memoryview, _Output], Iterator[None]]] = {
    Compression.NONE: _decompress_none,
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
