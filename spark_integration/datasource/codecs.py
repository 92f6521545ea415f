"""Decompresses record batches with Arrow's codecs, each with a limit on the output size.

Pure. A body may be a decompression bomb, so output is produced and counted in steps; Snappy states
its size in advance, which is checked against the most that its format can reach.
"""

import io
import struct
from typing import Final

import pyarrow

from spark_integration.datasource.errors import CorruptBatch

NONE: Final = 0
SNAPPY: Final = 2
# Codec numbers in a batch's attributes that Arrow reads as streams.
STREAMS: Final = {1: "gzip", 3: "lz4", 4: "zstd"}
NAMES: Final = {NONE: "none", SNAPPY: "snappy", **STREAMS}
STEP: Final = 2**20
# The limit for one batch. Kafka's own limit is for the compressed batch, 1 MB by default; a batch
# of zeros of that size exceeds this limit only with zstd, and then it is an accident or an attack.
MAX_UNPACKED: Final = 2**28
# Java's container for raw blocks: magic, two versions, then blocks with their length in front.
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = len(XERIAL_MAGIC) + 8
INT32: Final = struct.Struct(">i")
# The densest element of the format writes 64 bytes from 3.
SNAPPY_MAX_RATIO: Final = 22
MAX_VARINT_BYTES: Final = 5


def decompress(codec: int, data: memoryview, *, max_bytes: int = MAX_UNPACKED) -> memoryview:
    """Decompress the records of a batch to at most `max_bytes`."""
    if codec == NONE:
        return data
    name = NAMES.get(codec)
    if name is None:
        raise CorruptBatch(f"its codec is {codec}, not one of 0 to {max(NAMES)}")
    try:
        if codec == SNAPPY:
            return memoryview(unpacked_snappy(data, max_bytes))
        return memoryview(unpacked_stream(name, data, max_bytes))
    except (OSError, pyarrow.ArrowException) as error:
        raise CorruptBatch(f"its {name} data cannot be decompressed: {error}") from error


def unpacked_stream(name: str, data: memoryview, max_bytes: int) -> bytes:
    output = io.BytesIO()
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), name) as stream:
        while piece := stream.read(STEP):
            require_room(output.tell() + len(piece), max_bytes)
            output.write(piece)
    return output.getvalue()


def unpacked_snappy(data: memoryview, max_bytes: int) -> bytes:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return snappy_block(data, max_bytes)
    output = io.BytesIO()
    position = 0
    while position < len(data):
        # Streams may be concatenated.
        if bytes(data[position : position + len(XERIAL_MAGIC)]) == XERIAL_MAGIC:
            position += XERIAL_HEADER
            continue
        start = position + INT32.size
        size = INT32.unpack(data[position:start])[0] if start <= len(data) else -1
        if not 0 < size <= len(data) - start:
            raise CorruptBatch(f"a snappy block of {size} bytes, {len(data) - position} are left")
        output.write(snappy_block(data[start : start + size], max_bytes - output.tell()))
        position = start + size
    return output.getvalue()


def snappy_block(block: memoryview, max_bytes: int) -> bytes:
    size = 0
    for place, byte in enumerate(block[:MAX_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    require_room(size, max_bytes)
    if size > SNAPPY_MAX_RATIO * len(block):
        raise CorruptBatch(f"a snappy block of {len(block)} bytes cannot decompress to {size}")
    unpacked: bytes = pyarrow.Codec("snappy").decompress(
        pyarrow.py_buffer(block), decompressed_size=size, asbytes=True
    )
    return unpacked


def require_room(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise CorruptBatch(f"its records decompress to more than the limit of {max_bytes} bytes")
