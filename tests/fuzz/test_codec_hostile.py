"""The classic attacks on a decoder, on every field of every message: refused, and for no memory.

What is bounded, exactly: a frame that lies about a length, a count or a size, or that ends early,
is refused for at most twice its bytes and a small allowance, because everything is compared with
the bytes left before it is allocated. A frame that really brings its elements costs what the
objects cost: an array of the smallest structures takes up to `DENSEST` times its bytes, and
`MAX_ELEMENTS` is what bounds that.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.errors import DecodeError
from brokers.protocol.frames import FrameBuffers, FrameSplitter
from brokers.protocol.messages.create_topics import CreateTopicsRequest
from brokers.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from brokers.protocol.primitives import MAX_ELEMENTS
from brokers.protocol.schema import Field, Kind, Message
from tests.fuzz.layout import joined, pieces_of, varint
from tests.fuzz.lies import lies
from tests.fuzz.memory import ALLOWANCE, DENSEST, peak_of
from tests.fuzz.pairs import PAIRS
from tests.oracles.strategies import CORNERS, Corner, corner
from tests.scale import count

DENSE_ELEMENTS = 250  # enough that the message around them does not show
# Bytes of objects that `MAX_ELEMENTS` elements may take. Strangers send requests; responses come
# from brokers and are richer. A quarter above what Python 3.11 needs, as sizes differ by version.
LARGEST_MESSAGE = {"Request": 320 * 1024 * 1024, "Response": 960 * 1024 * 1024}

BY_NAME = {each.name: each for each in CORNERS}
SHARDS = 6


def encoded(value: Message, version: int) -> bytes:
    return b"".join(codec(type(value), version).encode(value))


def is_refused(message: type[Message], version: int, frame: bytes) -> bool:
    try:
        codec(message, version).decode(memoryview(frame))
    except DecodeError:
        return True
    return False


def compiled(message: type[Message], version: int) -> Callable[[memoryview | bytes], Message]:
    """Return the decoder itself: what stands in its place until it is first called compiles it."""
    made = codec(message, version)
    # Nothing decodes from no bytes, and what could be is decoded all the same.
    with suppress(DecodeError, IndexError):
        made.decode(b"")
    return made.decode


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_message_cut_at_any_byte_is_refused(shard: int) -> None:
    # The full corner is a hundred times longer and differs by its long texts only.
    steps = {"null": 1, "empty": 1, "small": 1, "full": count(29, 29, long=1)}
    for message, version in PAIRS[shard::SHARDS]:
        for name, step in steps.items():
            whole = encoded(corner(message, version, BY_NAME[name]), version)
            assert not is_refused(message, version, whole)

            served = [
                end
                for end in range(0, len(whole), step)
                if not is_refused(message, version, whole[:end])
            ]

            assert served == [], f"{message.__name__} v{version}, the corner {name}"


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_lie_at_any_place_is_refused_in_bounded_memory(
    shard: int, report: Callable[[str], None]
) -> None:
    frames, worst = 0, 0
    for message, version in PAIRS[shard::SHARDS]:
        whole = pieces_of(corner(message, version, BY_NAME["small"]), version, message.FLEXIBLE)
        assert not is_refused(message, version, joined(whole))
        for frame, lie in lies(whole):
            what = f"{message.__name__} v{version}, {lie}: {frame.hex()}"
            frames += 1
            assert is_refused(message, version, frame), what

            bound = 2 * len(frame) + ALLOWANCE
            peak = peak_of(is_refused, message, version, frame, enough=bound)

            assert peak <= bound, what
            worst = max(worst, peak - 2 * len(frame))
    report(f"{frames:,} frames; the worst took {worst:,} bytes beside twice its own")


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGEST_MESSAGE)
def test_the_densest_arrays_cost_a_known_multiple_of_their_bytes(
    kind: str, report: Callable[[str], None]
) -> None:
    factors, elements = [], []
    for message in dict(PAIRS):
        for version in dict.fromkeys(message.VERSIONS) if message.__name__.endswith(kind) else ():
            for path in array_paths(message, version, ()):
                frame = memoryview(encoded(dense(message, path, version), version))
                decode = compiled(message, version)
                peak = peak_of(decode, frame, enough=DENSEST * len(frame))
                where = ".".join(field.name for field in path)
                what = f"{message.__name__} v{version} {where}"
                factors.append((peak / len(frame), what))
                elements.append((peak / DENSE_ELEMENTS, what))
    factors.sort(reverse=True)
    elements.sort(reverse=True)
    rows = [f"{factor:5.1f} × its bytes: {what}" for factor, what in factors[:5]]
    rows += [f"{size:5.0f} bytes for an element: {what}" for size, what in elements[:5]]
    largest = elements[0][0] * MAX_ELEMENTS
    rows.append(f"so {MAX_ELEMENTS:,} elements take at most {largest / 2**20:.0f} MiB")
    report("\n".join(rows))

    assert factors[0][0] <= DENSEST
    assert largest <= LARGEST_MESSAGE[kind]


# Nothing inside an element but the smallest things that Python has to allocate.
DENSE = Corner(
    name="dense",
    integer=lambda _, high: high,
    text="ž",
    blob=b"ab",
    real=0.5,
    flag=True,
    uuid=bytes(16),
    elements=0,
    nulls=False,
    tags=False,
)


def array_paths(
    message: type[Message], version: int, above: tuple[Field, ...]
) -> Iterator[tuple[Field, ...]]:
    for field in message.FIELDS:
        if not field.is_in(version) or field.tag is not None:
            continue
        if field.kind is Kind.ARRAY:
            yield (*above, field)
        if isinstance(field.element, type):
            yield from array_paths(field.element, version, (*above, field))


def dense(message: type[Message], path: tuple[Field, ...], version: int) -> Message:
    """Fill the array at the end of the path with as many elements as make the frame large."""
    value = corner(message, version, DENSE)
    field, *rest = path
    if rest:
        assert isinstance(field.element, type)
        inner = dense(field.element, tuple(rest), version)
        setattr(value, field.name, [inner] if field.kind is Kind.ARRAY else inner)
        return value
    element: Any = field.element
    one = corner(element, version, DENSE) if isinstance(element, type) else _plain(element)
    setattr(value, field.name, [one] * DENSE_ELEMENTS)
    return value


def _plain(kind: Kind) -> Any:
    if kind is Kind.STRING:
        return DENSE.text
    if kind is Kind.UUID:
        return DENSE.uuid
    # Beyond the small numbers that Python keeps ready, but within every width.
    return {Kind.INT8: 127}.get(kind, 32_767)


def test_one_element_more_than_a_message_may_hold_is_refused_before_it_is_made() -> None:
    decode = compiled(DescribeLogDirsRequest, 1)
    element = b"\0\0\0\0\0\0"  # a topic without name and partitions
    frame = (MAX_ELEMENTS + 1).to_bytes(4, "big") + element * (MAX_ELEMENTS + 1)

    def refused() -> None:
        with pytest.raises(DecodeError, match="elements"):
            decode(frame)

    assert peak_of(refused) <= ALLOWANCE


def test_a_bomb_of_unknown_tags_is_skipped_without_keeping_it() -> None:
    decode = compiled(CreateTopicsRequest, 7)
    whole = encoded(CreateTopicsRequest(), 7)
    decode(whole)
    bomb = whole[:-1] + varint(100_000) + b"\x63\0" * 100_000

    assert peak_of(decode, bomb) <= ALLOWANCE


def test_a_frame_of_two_gigabytes_is_refused_by_its_size_alone() -> None:
    splitter = FrameSplitter(FrameBuffers())
    shared = memoryview(bytearray(64))
    splitter.room(shared)[:4] = b"\x7f\xff\xff\xff"

    def refused() -> None:
        with pytest.raises(DecodeError, match="2147483647"):
            list(splitter.received(4))

    assert peak_of(refused) <= ALLOWANCE
