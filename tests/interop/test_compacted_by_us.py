"""A topic that we have compacted, read by a client library: emptied batches among it, any codec."""

import asyncio
import random
import time
from pathlib import Path

import pytest

from brokers.protocol.records.batch import HEADER_SIZE
from tests.fakes.broker import RunningBroker, running_broker
from tests.oracles.confluent_client import Scribe, read_all

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(120)]

QUICKLY = {"log.cleaner.backoff.ms": "100"}
COMPACT = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
}
PRODUCERS = 5
KEYS = 3
SECONDS = 60.0


def write(bootstrap: str, codec: str) -> Scribe:
    """Several producers, each of which is known by its last batch only, once it is emptied."""
    scribe, draw = Scribe(bootstrap, "t"), random.Random(0)
    for _ in range(PRODUCERS):
        producer = scribe.producer(compression_type=codec)
        for number in range(8):
            value = draw.randbytes(2000) + b"x" * 1000
            scribe.write(
                producer, 0, [(b"k%d" % (number % KEYS), value, ())], int(time.time() * 1000)
            )
    return scribe


async def until_clean(running: RunningBroker) -> int:
    """Waits for the process that cleans; returns the number of batches without records."""
    replicas = running.context.replicas
    log = replicas.leader("t", 0).log
    async with asyncio.timeout(SECONDS):
        while replicas.log_dir.first_dirty(("t", 0)) < log.segments.active.base_offset:  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0)
    return sum(header.size == HEADER_SIZE for one in log.segments for header in one.headers())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_client_reads_what_compaction_left(tmp_path: Path, codec: str) -> None:
    async def story() -> None:
        async with running_broker(
            tmp_path, topics={"t": 1}, configs=COMPACT, defaults=QUICKLY
        ) as running:
            bootstrap = f"{running.ready.host}:{running.ready.port}"
            scribe = await asyncio.to_thread(write, bootstrap, codec)
            assert await until_clean(running) >= 3

            seen = await asyncio.to_thread(read_all, bootstrap, "t", 0)

            written = scribe.rows(0)
            assert len(seen) < len(written) / 2
            assert set(seen) <= set(written)
            last = {row.key: row for row in written}
            assert {row.key: row for row in seen} == last

    asyncio.run(story())
