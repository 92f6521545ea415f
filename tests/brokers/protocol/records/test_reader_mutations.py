"""Fuzz: whatever a batch claims, only typed errors leave, in bounded memory and time."""

import tracemalloc
from contextlib import suppress
from random import Random

import pytest

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import Batch, batches
from brokers.protocol.records.compression import OUTPUT_STEP, Compression
from brokers.protocol.records.control import read_end_txn
from brokers.protocol.records.reader import Outline, outlines, records, stamp_from
from brokers.protocol.records.validation import (
    NeedsInspection,
    ProduceRules,
    check_produced,
    check_replicated,
)
from tests.brokers.protocol.records.mutations import MUTATIONS, mutate
from tests.brokers.protocol.records.samples import NOW_MS, SAMPLES, build, captured
from tests.scale import count

CAP = 2**18
RULES = ProduceRules(are_keys_required=True, max_decompressed_bytes=CAP)
PRODUCER = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3}
SEEDS = (
    *(bytes(build(compression=codec)) for codec in Compression),
    *(bytes(build(SAMPLES, compression=codec, **PRODUCER)) for codec in Compression),
    bytes(captured("librdkafka-snappy.bin")),
    bytes(captured("java-zstd.bin")),
    bytes(captured("java-commit.bin")),
)
SHARDS = 4


def read_everything(data: bytes) -> bool:
    """Put a batch through all that reads batches; tell whether its records were reached."""
    view = memoryview(bytearray(data))
    with suppress(KafkaError, NeedsInspection):
        check_produced(view, RULES, NOW_MS)
    with suppress(KafkaError):
        check_replicated(view, expected_offset=0)
    has_reached = False
    with suppress(KafkaError):
        for batch in batches(view):
            if batch.is_control:
                read_end_txn(batch)
            with suppress(KafkaError):
                stamp_from(batch, batch.base_offset + 3, max_bytes=CAP, max_records=CAP)
            has_reached = batch.compression in Compression and batch.record_count > 0
            for _ in records(batch, max_bytes=CAP):
                pass
    return has_reached


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_batches_end_in_typed_errors_only(shard: int) -> None:
    rng = Random(shard)
    turns = count(20_000, 20_000, long=400_000) // SHARDS

    reached = sum(read_everything(mutate(rng, rng.choice(SEEDS))) for _ in range(turns))

    assert reached >= 0.3 * turns


def read_whole(batch: Batch) -> list[Outline] | str:
    try:
        rows = list(records(batch, max_bytes=CAP))
    except KafkaError as error:
        return error.message
    return [(row.offset, row.timestamp, row.key is not None) for row in rows]


def read_outlines(batch: Batch) -> list[Outline] | str:
    try:
        paced = outlines(batch, max_bytes=CAP, max_parts=CAP)
        return [row for row in paced if row is not None]
    except KafkaError as error:
        return error.message


@pytest.mark.slow
def test_outlines_accept_and_refuse_what_the_whole_reading_does() -> None:
    rng = Random(17)
    found = [
        batch
        for _ in range(count(5_000, 10_000, long=200_000))
        for batch in whole_batches(mutate(rng, rng.choice(SEEDS)))
    ]

    # A count beyond the limit is refused before the body is looked at.
    outcomes = [(read_outlines(b), read_whole(b)) for b in found if 0 <= b.record_count <= CAP]

    assert all(outlined == whole for outlined, whole in outcomes)
    assert sum(isinstance(whole, list) for _, whole in outcomes) > 0.03 * len(found)


def whole_batches(data: bytes) -> list[Batch]:
    with suppress(KafkaError):
        return list(batches(memoryview(data)))
    return []


@pytest.mark.slow
def test_mutated_batches_take_no_more_memory_than_the_cap_allows() -> None:
    rng = Random(99)
    broken = [mutate(rng, rng.choice(SEEDS)) for _ in range(count(1_000, 1_000, long=20_000))]
    largest = max(map(len, broken))

    tracemalloc.start()
    try:
        for data in broken:
            read_everything(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # The pieces and the whole, one step past the cap, and the records as objects around both: a
    # record of seven bytes takes some two hundred.
    assert peak <= 2 * (CAP + OUTPUT_STEP + largest) + 32 * largest


def test_every_mutation_makes_something_of_every_seed() -> None:
    rng = Random(5)
    for mutation in MUTATIONS:
        outcomes = {bytes(mutation(rng, bytearray(seed))) for seed in SEEDS for _ in range(5)}
        assert len(outcomes - set(SEEDS)) > len(SEEDS)


def test_a_seed_repeats_its_mutations() -> None:
    first, second = ([mutate(rng, SEEDS[0]) for _ in range(50)] for rng in (Random(3), Random(3)))

    assert first == second
