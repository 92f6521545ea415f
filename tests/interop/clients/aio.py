"""aiokafka as a client of the matrix."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from brokers.protocol.records.compression import Compression
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Row, Sent, Trait

LINGER_MS = 20
FETCH_WAIT_MS = 10


class AioClient:
    name = "aiokafka"
    needs: tuple[str, ...] = ()
    cannot_write: Mapping[Trait, str] = {
        Trait.NULL_KEY_NULL_VALUE: "its send wants at least one of the two",
    }

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        codec: Compression,
        *,
        idempotent: bool,
    ) -> None:
        async def run() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec is Compression.NONE else codec.name.lower(),
                enable_idempotence=idempotent,
                linger_ms=LINGER_MS,
            )
            async with producer:
                waiting = [
                    await producer.send(
                        topic,
                        sent.value,
                        sent.key,
                        sent.partition,
                        timestamp_ms=sent.timestamp,
                        headers=list(sent.headers),
                    )
                    for sent in records
                ]
                await asyncio.gather(*waiting)

        asyncio.run(asyncio.wait_for(run(), SECONDS))

    def read(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> list[Row]:
        async def run() -> list[Row]:
            rows: list[Row] = []
            places = [TopicPartition(topic, each) for each in partitions]
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                auto_offset_reset="none",
                enable_auto_commit=False,
                fetch_max_wait_ms=FETCH_WAIT_MS,
            )
            async with consumer:
                consumer.assign(places)
                await consumer.seek_to_beginning(*places)
                ends = await consumer.end_offsets(places)
                while any([await consumer.position(place) < ends[place] for place in places]):
                    for batch in (await consumer.getmany(timeout_ms=1000)).values():
                        rows += [_row(message) for message in batch]
            return rows

        return asyncio.run(asyncio.wait_for(run(), SECONDS))


def _row(message: Any) -> Row:
    return Row(
        message.partition,
        message.offset,
        message.timestamp,
        message.key,
        message.value,
        tuple(message.headers),
    )
