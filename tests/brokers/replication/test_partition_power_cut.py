"""What was acknowledged is there after the power was cut, at whatever moment that was.

The whole way of a batch but its socket: handler, partition, log, flusher, and a disk that loses
what was not synced. The same runs with a broker that answers first must lose something, or they
prove nothing.
"""

import asyncio
import random
from pathlib import Path

import pytest

from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.server.handlers import produce
from tests.brokers.replication.parts import REPLICATED, Line, Rig, image, rig, topic, until
from tests.builders.logs import batch, content, spans
from tests.fakes.crash_files import CrashDisk, CrashFiles
from tests.scale import count

ROUNDS = count(6, 10, long=200)
BATCHES = 40
ACKNOWLEDGED = 12  # when the power goes

pytestmark = pytest.mark.slow


class CutFiles(CrashFiles):
    """A disk whose power is gone once `is_cut`: what is done from then on was never done."""

    is_cut = False

    def _note(self, kind: str, *arguments: int | str | bytes) -> None:
        if not self.is_cut:
            super()._note(kind, *arguments)


def produce_some(broker: Rig, rng: random.Random) -> list[Line]:
    lines = []
    for _ in range(rng.randrange(1, 6)):
        data = PartitionProduceData(
            index=rng.randrange(3), records=batch(records=rng.randrange(1, 4))
        )
        request = ProduceRequest(
            acks=rng.choice([1, -1]),
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name="t", partition_data=[data])],
        )
        lines.append(broker.ask(produce, request, 9))
    return lines


def acknowledged(lines: list[Line]) -> set[tuple[int, int]]:
    """Partition and first offset of every batch that a client believes in."""
    found = set()
    for line in lines:
        for response in line.answers:
            answer = response.responses[0].partition_responses[0]
            assert answer.error_code == 0
            found.add((answer.index, answer.base_offset))
    return found


async def run_until_the_cut(
    disk: CrashDisk, rng: random.Random, configs: dict[str, str]
) -> set[tuple[int, int]]:
    files = CutFiles(str(disk.live), str(disk.journal))
    cluster = image(topic(partitions=3), configs={"t": configs})
    try:
        async with rig(disk.live, cluster, files=files) as broker:
            lines: list[Line] = []
            while len(acknowledged(lines)) < ACKNOWLEDGED and len(lines) < BATCHES:
                lines.extend(produce_some(broker, rng))
                for _ in range(rng.randrange(4)):
                    await asyncio.sleep(0)
                if len(lines) >= BATCHES - 6:
                    await until(lambda: bool(acknowledged(lines)))
            files.is_cut = True
            return acknowledged(lines)
    finally:
        files.stop()


async def kept_after(disk: CrashDisk) -> set[tuple[int, int]]:
    with disk.files() as files:
        async with rig(disk.live, image(topic(partitions=3)), files=files) as broker:
            kept = set()
            for partition in broker.replicas.partitions():
                offsets = spans(content(partition.log))
                ends = [0, *(last + 1 for _first, last in offsets)]
                assert [first for first, _last in offsets] == ends[:-1], "offsets have a hole"
                kept |= {(partition.index, first) for first, _last in offsets}
            return kept


def lost(folder: Path, seed: int, configs: dict[str, str]) -> set[tuple[int, int]]:
    rng = random.Random(seed)
    disk = CrashDisk(folder / str(seed))
    told = asyncio.run(run_until_the_cut(disk, rng, configs))
    assert told, "nothing was acknowledged before the cut"
    disk.lose_power(rng)
    return told - asyncio.run(kept_after(disk))


def test_nothing_acknowledged_is_lost_where_durability_is_synced(tmp_path: Path) -> None:
    for seed in range(ROUNDS):
        assert lost(tmp_path, seed, {}) == set(), f"seed {seed}"


def test_a_broker_that_answers_before_the_disk_has_confirmed_would_lose_some(
    tmp_path: Path,
) -> None:
    assert any(lost(tmp_path, seed, REPLICATED) for seed in range(ROUNDS))
