"""What tests of producing run on: a real broker, a loop, and all routes of the room."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cached_property, partial, wraps
from typing import Any

from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.delivery import Deliveries
from gateway.kafka.pool import Pool
from gateway.kafka.values import Record, Span
from gateway.rest.calls import JSON, Call
from gateway.rest.produce.batch import produce_batch
from gateway.rest.produce.desk import Desk, Limits
from gateway.rest.produce.routes import PRODUCE
from gateway.rest.produce.stream import Streams
from gateway.rest.produce.v2 import V2, produce_v2
from gateway.rest.route import Handler, Route
from gateway.rest.topic_creation import TopicCreation
from tests.fakes.rest_door import CLUSTER, Door


class Stage:
    """What a test uses on its loop, made when it is first asked for."""

    def __init__(
        self, connection: Connection, *, limits: Limits | None = None, creates_topics: bool = False
    ) -> None:
        self.connection = connection
        self._limits = limits
        self._creates_topics = creates_topics

    @cached_property
    def desk(self) -> Desk:
        creation = self.creation if self._creates_topics else None
        return Desk(self.deliveries, limits=self._limits, creation=creation)

    @cached_property
    def deliveries(self) -> Deliveries:
        return Deliveries(self.connection)

    @cached_property
    def creation(self) -> TopicCreation:
        return TopicCreation(
            Pool(lambda: self.connection),
            look_up=self.deliveries.topics.require,
            cluster_id=lambda: CLUSTER,
        )

    @cached_property
    def streams(self) -> Streams:
        return Streams()

    @cached_property
    def door(self) -> Door:
        return door_of(self.streams, self.desk)


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on a loop of its own, until none of its records is in flight."""

    @wraps(test)
    def run(stage: Stage, **others: object) -> None:
        async def whole() -> None:
            try:
                await test(stage=stage, **others)
            finally:
                await stage.deliveries.close()

        asyncio.run(whole())

    return run


def door_of(streams: Streams, desk: Desk) -> Door:
    async def produce(call: Call) -> None:
        await streams.produce(call, desk)

    topic = "/clusters/{cluster}/topics/{topic}"
    handlers: dict[str, Handler] = {
        f"{topic}/records": produce,
        f"{topic}/records:batch": partial(produce_batch, desk=desk),
        "/topics/{topic}": partial(produce_v2, desk=desk),
        "/topics/{topic}/partitions/{partition}": partial(produce_v2, desk=desk),
    }
    return Door(
        [
            Route(
                method="POST",
                path=path,
                handler=handler,
                rights=PRODUCE,
                error_type=JSON if "/{cl" in path else V2,
            )
            for path, handler in handlers.items()
        ]
    )


def records_of(connection: Connection, topic: str, partition: int = 0) -> list[Record]:
    spans = [Span(partition=partition, start=0)]
    with Reader(connection, topic, spans, stops_at_end=True) as reader:
        return [record for batch in reader.batches() for record in batch]
