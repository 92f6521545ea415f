"""Which lines of the generated decoders the attacks of this folder run, counted line by line.

The decoders are compiled from text that exists nowhere else, so no tool for files sees them: a
trace function does, over one valid message of every kind, each cut at every byte, told every lie,
and with tags that nobody knows.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any

import pytest

from brokers.protocol import decoding, primitives
from brokers.protocol.decoding import generate_decoder
from brokers.protocol.errors import DecodeError
from brokers.protocol.schema import Message
from tests.fuzz.layout import Part, Piece, joined, pieces_of, varint
from tests.fuzz.lies import lies
from tests.fuzz.pairs import PAIRS
from tests.oracles.strategies import CORNERS, corner

LEAST_COVERED = 0.95
SHARDS = 6
SMALL = next(each for each in CORNERS if each.name == "small")
# The functions of `primitives` that decoders call; the rest is the encoders'.
READERS = (
    primitives.read_uvarint,
    primitives.skip_tags,
    primitives.bad_length,
    primitives.left_over,
    primitives.cut_short,
    primitives.not_utf8,
    primitives.too_many,
    primitives.wrong_tag_size,
)

Lines = set[tuple[CodeType, int]]


@contextmanager
def traced(run: Lines, wanted: set[CodeType]) -> Iterator[None]:
    """Note every line of wanted code that runs meanwhile."""

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            run.add((frame.f_code, frame.f_lineno))
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        return on_line if frame.f_code in wanted else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


def lines_of(code: CodeType) -> Lines:
    lines = {(code, line) for _, _, line in code.co_lines() if line is not None}
    lines.discard((code, code.co_firstlineno))  # the definition itself
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            lines |= lines_of(constant)
    return lines


def attacks(message: type[Message], version: int) -> Iterator[bytes]:
    for how in CORNERS:
        yield joined(pieces_of(corner(message, version, how), version, message.FLEXIBLE))
    small = pieces_of(corner(message, version, SMALL), version, message.FLEXIBLE)
    whole = joined(small)
    yield from (whole[:end] for end in range(len(whole)))
    yield from (frame for frame, _ in lies(small))
    yield from strangers(small)


def strangers(pieces: list[Piece]) -> Iterator[bytes]:
    """Add tags that nobody knows: one, and so many that their count takes two bytes."""
    for index, piece in enumerate(pieces):
        if piece.part is Part.TAGS:
            for more in (1, 200):
                count = piece.saying(varint(piece.data[0] + more))
                unknown = Piece(Part.DATA, b"\x63\2ab" * more)
                yield joined([*pieces[:index], count, unknown, *pieces[index + 1 :]])


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_attacks_reach_the_lines_of_the_generated_decoders(
    shard: int, report: Callable[[str], None]
) -> None:
    lines, run, frames = Lines(), Lines(), 0
    for message, version in PAIRS[shard::SHARDS]:
        decode: Any = generate_decoder(message, version)
        own = lines_of(decode.__code__)
        lines |= own
        with traced(run, {decode.__code__}):
            for frame in attacks(message, version):
                frames += 1
                with suppress(DecodeError):
                    decode(frame)

    missed = sorted((code.co_filename, line) for code, line in lines - run)
    share = 1 - len(missed) / len(lines)
    report(
        f"{share:.2%} of {len(lines):,} lines of {len(PAIRS[shard::SHARDS])} decoders"
        f" in {frames:,} frames; not run: {missed[:10]}"
    )
    assert share >= LEAST_COVERED


@pytest.mark.slow
def test_the_attacks_reach_the_lines_of_the_reading_functions(
    report: Callable[[str], None],
) -> None:
    lines, run = Lines(), Lines()
    for reader in READERS:
        lines |= lines_of(reader.__code__)
    for name in dir(decoding._DecoderWriter):  # noqa: SLF001  what writes the decoders
        method = getattr(decoding._DecoderWriter, name)  # noqa: SLF001
        if hasattr(method, "__code__"):
            lines |= lines_of(method.__code__)
    wanted = {code for code, _ in lines}

    with traced(run, wanted):
        for message, version in PAIRS:
            decode = generate_decoder(message, version)
            for frame in attacks(message, version) if version == message.VERSIONS[1] else ():
                with suppress(DecodeError):
                    decode(frame)

    missed = sorted((code.co_name, line) for code, line in lines - run)
    share = 1 - len(missed) / len(lines)
    report(f"{share:.2%} of {len(lines):,} lines; not run: {missed}")
    assert share >= LEAST_COVERED
