"""Fuzz of every decoder: whatever a frame claims, only typed errors leave.

Frames are built from the tables, broken piece by piece, and go the way of a broker: header, body,
and the record readers where a body carries batches. Every message and version is met.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from random import Random

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.decoding import carries_records
from brokers.protocol.errors import KafkaError, ProtocolError
from brokers.protocol.headers import read_request
from brokers.protocol.records.batch import batches
from brokers.protocol.records.reader import records
from brokers.protocol.records.validation import ProduceRules, check_produced, check_replicated
from brokers.protocol.schema import Field, Message
from tests.fuzz.frames import broken, drawn, request_frame
from tests.fuzz.layout import joined, pieces_of
from tests.fuzz.memory import ALLOWANCE, DENSEST, peak_of
from tests.fuzz.pairs import PAIRS
from tests.oracles.strategies import corners, replaced
from tests.scale import count

SEED = 20_261_118
SHARDS = 12
BATCH_FRAMES = count(4_000, 8_000, long=600_000)
BATCH_SHARDS = 4
FRAMES_PER_PAIR = count(110, 220, long=10_000)
# Each pair must meet its decoder that often, and of all frames so many must get past the header.
LEAST_PER_PAIR = count(25, 50, long=2_000)
LEAST_SHARE = 0.3
# A value is drawn and taken apart once for so many broken frames: that is where the time goes.
FRAMES_PER_VALUE = 10

NOW_MS = 1_700_000_000_000
RULES = ProduceRules(max_decompressed_bytes=2**18)


def frames(rng: Random, message: type[Message], version: int) -> Iterator[bytes]:
    for _ in range(0, FRAMES_PER_PAIR, FRAMES_PER_VALUE):
        pieces = pieces_of(drawn(rng, message, version), version, message.FLEXIBLE)
        for _ in range(FRAMES_PER_VALUE):
            body = rng.randbytes(60) if rng.random() < 0.02 else broken(rng, pieces)
            yield framed(rng, message, version, body)


def framed(rng: Random, message: type[Message], version: int, body: bytes) -> bytes:
    """Put a header before a request; a response is read by whoever asked, who knows its version."""
    is_request = message.__name__.endswith("Request")
    return request_frame(rng, message, version, body) if is_request else body


def receive_or_tell(
    frame: bytes, message: type[Message], version: int, seen: Counter[str], seed: int
) -> None:
    try:
        receive(frame, message, version, seen)
    except BaseException as error:
        # Whatever it is, the frame that brought it about must be known.
        error.add_note(f"seed {seed}, {message.__name__} v{version}: {frame.hex()}")
        raise


def receive(frame: bytes, message: type[Message], version: int, seen: Counter[str]) -> None:
    """Do what a broker does with a request, or a peer with the body of a response."""
    # Writable, as all that a broker receives.
    body = memoryview(bytearray(frame))
    try:
        if message.__name__.endswith("Request"):
            request = read_request(body, APIS, place=0)
            if not request.api.serves(request.version):
                return
            # A broken header may name another message: then that one is met.
            message, version, body = request.api.request, request.version, request.body
        seen["reached"] += 1
        seen[f"{message.__name__} v{version}"] += 1
        decoded = codec(message, version).decode(body)
    except ProtocolError:
        seen["refused"] += 1
        return
    seen["decoded"] += 1
    read_batches(decoded, version, seen)


def read_batches(decoded: Message, version: int, seen: Counter[str]) -> None:
    def read(field: Field, found: object) -> object:
        if isinstance(found, memoryview):
            seen["record data"] += 1
            read_record_data(found, seen)
        return found

    replaced(decoded, version, read)


def read_record_data(data: memoryview, seen: Counter[str]) -> None:
    with suppress(KafkaError):
        check_produced(data, RULES, NOW_MS)
    with suppress(KafkaError):
        check_replicated(data, expected_offset=0)
    with suppress(KafkaError):
        for batch in batches(data):
            seen["batches"] += 1
            for _ in records(batch, max_bytes=RULES.max_decompressed_bytes):
                seen["records"] += 1


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_broken_frames_end_in_typed_errors_only(shard: int, report: Callable[[str], None]) -> None:
    seed = SEED + shard
    rng, seen, mine = Random(seed), Counter[str](), PAIRS[shard::SHARDS]
    for message, version in mine:
        for frame in frames(rng, message, version):
            seen["frames"] += 1
            receive_or_tell(frame, message, version, seen, seed)

    least = min(seen[f"{message.__name__} v{version}"] for message, version in mine)
    report(
        f"seed {seed}: {seen['frames']:,} frames of {len(mine)} pairs,"
        f" {seen['reached'] / seen['frames']:.0%} reached a decoder (each pair at least {least}),"
        f" {seen['decoded']:,} were decoded, {seen['refused']:,} refused,"
        f" {seen['record data']:,} times record data was read"
    )
    assert seen["reached"] >= LEAST_SHARE * seen["frames"]
    assert seen["decoded"] > 0.02 * seen["frames"]
    assert least >= LEAST_PER_PAIR


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(BATCH_SHARDS))
def test_broken_batches_in_sound_frames_end_in_typed_errors_only(
    shard: int, report: Callable[[str], None]
) -> None:
    seed = SEED - 1 - shard
    rng, seen = Random(seed), Counter[str]()
    carrying = [(m, v) for m, v in PAIRS if carries_records(m, v)]
    for _ in range(BATCH_FRAMES // BATCH_SHARDS):
        message, version = rng.choice(carrying)
        body = joined(pieces_of(drawn(rng, message, version), version, message.FLEXIBLE))
        frame = framed(rng, message, version, body)
        receive_or_tell(frame, message, version, seen, seed)

    report(
        f"seed {seed}: {BATCH_FRAMES // BATCH_SHARDS:,} frames of {len(carrying)} pairs,"
        f" {seen['record data']:,} times record data was read,"
        f" {seen['batches']:,} batches and {seen['records']:,} records seen"
    )
    assert seen["record data"] >= LEAST_SHARE * BATCH_FRAMES // BATCH_SHARDS
    assert seen["records"] > 0


@pytest.mark.slow
def test_refused_frames_take_bounded_memory(report: Callable[[str], None]) -> None:
    rng, measured, worst = Random(SEED), 0, 0
    for message, version in PAIRS:
        for frame in islice(frames(rng, message, version), count(3, 6, long=30)):
            seen = Counter[str]()
            receive(frame, message, version, seen)
            if seen["refused"]:
                bound = DENSEST * len(frame) + ALLOWANCE
                peak = peak_of(receive, frame, message, version, seen, enough=bound)

                assert peak <= bound, frame.hex()
                measured, worst = measured + 1, max(worst, peak - 2 * len(frame))
    report(f"seed {SEED}: {measured:,} frames; the worst took {worst:,} bytes beside twice its own")


@pytest.mark.slow
def test_the_pieces_of_every_message_are_its_bytes() -> None:
    for message, version in PAIRS:
        for value in corners(message, version):
            pieces = pieces_of(value, version, message.FLEXIBLE)

            assert joined(pieces) == b"".join(codec(message, version).encode(value))


def test_a_seed_repeats_its_frames() -> None:
    message, version = PAIRS[0]

    first, second = (list(frames(Random(SEED), message, version)) for _ in range(2))

    assert first == second
