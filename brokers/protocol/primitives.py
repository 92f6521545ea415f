"""Reads and writes the protocol's number formats, and builds the errors of decoders and encoders.

Pure functions over a buffer and a position. Generated code calls these only in rare cases: it reads
and writes a length of one byte, the common case, inline.
"""

from typing import Final, TypeAlias

from brokers.protocol.errors import DecodeError, EncodeError, LeftOver

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_STRING_BYTES: Final = 32_767  # Kafka's limit for strings in both encodings (int16 maximum)
MAX_UVARINT_BYTES: Final = 5  # lengths, counts and tags are unsigned 32-bit numbers
# Elements of all arrays of one message together. A dense array of small structures becomes up to 60
# bytes of objects per byte and up to 512 per element (measured over all requests), so this bounds
# one request at 256 MiB whatever the frame limit; a reassignment of 100,000 partitions with three
# replicas each, the largest real one, still fits.
MAX_ELEMENTS: Final = 1 << 19

# Every unsigned varint that fits in one byte.
ONE_BYTE: Final = tuple(bytes([number]) for number in range(128))


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint and the position after it; IndexError at the end of bytes."""
    value = 0
    for shift in range(0, 7 * MAX_UVARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFF_FFFF:
                raise DecodeError(f"a length or tag of {value} does not fit in 32 bits")
            return value, position
    raise DecodeError(f"a length or tag runs on past {MAX_UVARINT_BYTES} bytes")


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def string_length(length: int) -> bytes:
    """Encode the length prefix of a compact string of 127 bytes or more."""
    if length - 1 > MAX_STRING_BYTES:
        raise EncodeError(f"a string of {length - 1} bytes exceeds the limit of {MAX_STRING_BYTES}")
    return uvarint(length)


def skip_tags(buffer: Buffer, position: int, count: int) -> int:
    """Return the position after `count` unknown tagged fields."""
    end = len(buffer)
    if count > 0x7F:
        count, position = read_uvarint(buffer, position - 1)
    if count * 2 > end - position:
        raise DecodeError(f"{count} tagged fields do not fit into {end - position} bytes")
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > end:
            raise DecodeError(f"a tagged field of {size} bytes runs past the end of the message")
    return position


def bad_length(where: str, length: int, left: int) -> DecodeError:
    """Return the error for a length or count: negative, over its limit or beyond the bytes left."""
    if length < 0:
        return DecodeError(f"{where} has length {length}, and null is not legal there")
    return DecodeError(f"{where} has length {length}, and {max(left, 0)} bytes are left")


def left_over(where: str, count: int) -> LeftOver:
    return LeftOver(f"{where}: {count} bytes are left over after the last field", count)


def cut_short(where: str, size: int) -> DecodeError:
    return DecodeError(f"{where}: the message ends after {size} bytes, inside a field")


def not_utf8(where: str, error: UnicodeDecodeError) -> DecodeError:
    return DecodeError(f"{where}: a string is not UTF-8: {error.reason}")


def too_many(where: str, count: int) -> DecodeError:
    return DecodeError(f"{where} brings {count} elements, and one message may hold {MAX_ELEMENTS}")


def wrong_tag_size(where: str, declared: int, used: int) -> DecodeError:
    return DecodeError(f"tagged field {where} declares {declared} bytes and uses {used}")


def lost_value(where: str, version: int) -> EncodeError:
    """Return the error for a value that the version has no field for and that would be dropped."""
    return EncodeError(f"{where} holds a value, and version {version} cannot carry it")


def wrong_uuid(where: str, value: bytes) -> EncodeError:
    return EncodeError(f"{where} is {value!r}, and a uuid is 16 bytes")
