"""A runtime of toy shards over real logs, for tests."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from brokers.clock import Clock
from brokers.cluster.image import ClusterImage, Topic
from brokers.coordination.answers import Done
from brokers.coordination.house import Limits
from brokers.coordination.runtime import Runtime, ShardState
from brokers.coordination.shard import Answer
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.waits import WaitRoom
from brokers.storage.files import Files
from tests.brokers.replication.parts import Rig, image, rig, topic, until
from tests.fakes.toy_shard import Number, ToyOperation, ToyShard

NAME = "__consumer_offsets"
COMPACTED: Mapping[str, Mapping[str, str]] = {NAME: {"cleanup.policy": "compact"}}


def offsets(*, partitions: int = 1, epoch: int = 0, leader: int = 1, number: int = 1) -> Topic:
    return topic(NAME, id=number, partitions=partitions, epoch=epoch, leader=leader)


def cluster(*topics: Topic, version: int = 1) -> ClusterImage:
    return image(*topics, version=version, configs=COMPACTED)


@dataclass
class Desk:
    """See the module."""

    broker: Rig
    runtime: Runtime[ToyShard]
    told: list[tuple[str, Exception]]
    shards: list[ToyShard] = field(default_factory=list)  # every one that was made

    def ask(self, operation: ToyOperation, index: int = 0) -> list[Answer]:
        """Submits; the list gets the answer."""
        answers: list[Answer] = []
        self.runtime.submit(index, operation, answers.append)
        return answers

    async def told_of(self, operation: ToyOperation, index: int = 0) -> int | ErrorCode:
        """Submits and waits."""
        answers = self.ask(operation, index)
        await until(lambda: bool(answers))
        return value(answers)

    async def apply(self, cluster: ClusterImage) -> None:
        await self.broker.apply(cluster)
        self.runtime.apply(cluster)

    async def is_active(self, index: int = 0) -> ToyShard:
        await until(lambda: self.runtime.states().get(index) is ShardState.ACTIVE)
        return self.runtime.look(index, lambda shard: shard)

    def sums(self, index: int = 0) -> dict[str, int]:
        return self.runtime.look(index, lambda shard: dict(shard.sums))


def value(answers: list[Answer]) -> int | ErrorCode:
    """The one answer: the number, or the error."""
    assert len(answers) == 1, f"{len(answers)} answers: {answers}"
    answer = answers[0]
    if isinstance(answer, KafkaError):
        return answer.code
    assert isinstance(answer, Number)
    return answer.value


@asynccontextmanager
async def desk(
    folder: Path,
    begin: ClusterImage | None = None,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    room: WaitRoom | None = None,
    limits: Limits | None = None,
    is_loaded: bool = True,
) -> AsyncIterator[Desk]:
    """Shards over the logs in `folder`, all of them loaded."""
    begin = begin or cluster(offsets())
    async with rig(folder, begin, files=files, clock=clock, room=room) as broker:
        told: list[tuple[str, Exception]] = []
        shards: list[ToyShard] = []

        def make(index: int, seen: ClusterImage) -> ToyShard:
            shards.append(ToyShard(index, seen))
            return shards[-1]

        runtime = Runtime(
            NAME,
            replicas=broker.replicas,
            clock=broker.clock,
            loop=broker.context.loop,
            make_shard=make,
            on_trouble=lambda event, error: told.append((event, error)),
            limits=limits,
        )
        built = Desk(broker, runtime, told, shards)
        runtime.apply(begin)
        if is_loaded:
            for index in runtime.states():
                await built.is_active(index)
        yield built
        await runtime.close()


async def turns(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def noting(order: list[str], name: str) -> Done:
    """Notes who is answered, in order."""

    def note(_answer: Answer) -> None:
        order.append(name)

    return note
