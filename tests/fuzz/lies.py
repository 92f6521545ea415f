"""One lie at a time: every place of a message, told every untruth that no reader may accept."""

from collections.abc import Iterator

from tests.fuzz.layout import Part, Piece, joined, length_bytes, varint

TEN_BYTES = b"\xff" * 9 + b"\x01"


def lies(whole: list[Piece]) -> Iterator[tuple[bytes, str]]:
    """Break one piece at a time, in every way that no reader may accept."""
    for index, piece in enumerate(whole):
        for data, lie in lies_of(piece):
            yield joined([*whole[:index], piece.saying(data), *whole[index + 1 :]]), lie
    yield joined(whole) + b"\0", "a byte too many"


def lies_of(piece: Piece) -> Iterator[tuple[bytes, str]]:
    is_varint = piece.form == "varint" or piece.part in (Part.TAGS, Part.TAG, Part.SIZE)
    if is_varint:
        yield TEN_BYTES, "a varint of ten bytes"
        yield b"\x80" * 30, "a varint without an end"
        yield varint(1 << 32), "a varint of 33 bits"
        if piece.part is not Part.TAG:
            yield varint((1 << 32) - 1), "the largest varint"
            yield varint(1 << 31), "the largest int32"
    if piece.part in (Part.LENGTH, Part.COUNT):
        if not is_varint:
            largest = (1 << (15 if piece.form == "h" else 31)) - 1
            yield length_bytes(largest, piece.form), "the largest length"
        if not piece.may_be_null:
            yield length_bytes(-1, piece.form), "null where it is not legal"
            if not is_varint:
                yield length_bytes(-2, piece.form), "a negative length"
    if piece.part is Part.SIZE:
        yield varint(piece.data[0] + 1), "a tag that uses less than it declares"
        yield varint(piece.data[0] - 1), "a tag that uses more than it declares"
    if piece.part is Part.TAGS:
        yield b"\x7f", "127 tags that are not there"
        stranger = b"\x63" + varint(1 << 16)
        yield varint(piece.data[0] + 1) + stranger, "an unknown tag that runs past the end"
    if piece.part is Part.TEXT:
        yield b"\xff", "a text that is not UTF-8"
