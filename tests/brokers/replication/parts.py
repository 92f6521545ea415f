"""A broker without sockets, for tests: real logs in a folder, a real flusher, a metadata image."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from brokers.clock import Clock
from brokers.cluster.image import (
    Broker,
    ClusterImage,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
    Topic,
)
from brokers.config import BrokerConfig
from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.headers import Request
from brokers.protocol.schema import Message
from brokers.replication.flusher import Flusher
from brokers.replication.log_settings import before_metadata
from brokers.replication.partition import Partition
from brokers.replication.replicas import Replicas
from brokers.replication.waits import WaitRoom
from brokers.server.call import Call, Closing
from brokers.server.context import Context
from brokers.server.fetch_sessions import FetchSessions
from brokers.server.file_range import FileRange
from brokers.server.metrics import Metrics
from brokers.server.peers import Peer
from brokers.server.producer_ids import ProducerIds
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log_dir import LogDir
from tests.fakes.clock import ManualClock
from tests.fakes.faulty_files import UnsyncedFiles

ME = 1
OTHER = 2
# Above what a disk takes that three times as many processes as cores write to.
WAIT_SECONDS = 60.0
REPLICATED = {"samsa.durability": "replicated"}


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def topic(
    name: str = "t",
    *,
    id: int = 1,  # noqa: A002 - the topic's word for it
    partitions: int = 1,
    leader: int = ME,
    epoch: int = 0,
) -> Topic:
    state = PartitionState(replicas=(leader,), isr=(leader,), leader=leader, leader_epoch=epoch)
    return Topic(name=name, id=topic_id(id), partitions=(state,) * partitions)


def image(
    *topics: Topic,
    version: int = 1,
    configs: Mapping[str, Mapping[str, str]] | None = None,
    deleted: Sequence[int] = (),
) -> ClusterImage:
    brokers = {
        number: Broker(id=number, epoch=1, host=f"host{number}", port=9091 + number, rack="r")
        for number in (ME, OTHER)
    }
    return ClusterImage(
        cluster_id="cluster",
        position=Position(version, bytes(16)),
        brokers=MappingProxyType(brokers),
        topics=MappingProxyType({topic.name: topic for topic in topics}),
        names=MappingProxyType({topic.id: topic.name for topic in topics}),
        configs=MappingProxyType(
            {
                (ResourceType.TOPIC, name): MappingProxyType({**values})
                for name, values in (configs or {}).items()
            }
        ),
        deleted=MappingProxyType(
            {topic_id(n): DeletedTopic(name="t", id=topic_id(n), version=version) for n in deleted}
        ),
    )


class TickingClock(ManualClock):
    """A clock that moves by a millisecond whenever it is asked, so that all work takes time."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


class GatedFiles(LocalFiles):
    """A disk that holds every sync until it is let go, and knows what was asked of it."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0  # that have begun
        self.fault: OSError | None = None

    def datasync(self, fd: int) -> None:  # type: ignore[override]
        self.syncs += 1
        self.gate.wait(WAIT_SECONDS)
        if self.fault is not None:
            raise self.fault


class Line:
    """The connection of calls, which keeps what was sent."""

    def __init__(self) -> None:
        self.peer = Peer(address="127.0.0.1")
        self.is_closed = False
        self.is_held = False
        self.answers: list[Any] = []
        self.silent = 0  # calls that ended without an answer
        self.reasons: list[str] = []
        self.watching: set[Closing] = set()

    def watch(self, call: Closing) -> None:
        self.watching.add(call)

    def hold(self) -> None:
        self.is_held = True

    def let_go(self) -> None:
        self.is_held = False

    def unwatch(self, call: Closing) -> None:
        self.watching.discard(call)

    def answered(self, call: Call, message: Message) -> None:
        if self.is_closed:
            return
        encoded = codec(type(message), call.version).encode(message)
        decoded: Any = codec(type(message), call.version).decode(sent(encoded))
        self.answers.append(decoded)

    def answered_encoded(self, call: Call, buffers: list[Sized]) -> None:
        raise AssertionError("no handler of data keeps encoded answers")

    def failed(self) -> None:
        raise AssertionError("a handler has failed")

    def skipped(self, call: Call) -> None:
        self.silent += 1

    def disconnect(self, reason: str) -> None:
        self.reasons.append(reason)
        self.close()

    def close(self) -> None:
        """The client goes."""
        self.is_closed = True
        watching, self.watching = self.watching, set()
        for call in watching:
            call.channel_closed()


def code_of(number: int) -> ErrorCode:
    """The error of this number, which has to be one."""
    return next(code for code in ErrorCode if code == number)


def sent(buffers: Sequence[Any]) -> bytes:
    """What a client receives of encoded buffers; file ranges are read and let go."""
    parts = []
    for buffer in buffers:
        if isinstance(buffer, FileRange):
            parts.append(LocalFiles().pread(buffer.fd, len(buffer), buffer.position))
            buffer.release()
        else:
            parts.append(bytes(buffer))
    return b"".join(parts)


@dataclass
class Rig:
    """See the module."""

    replicas: Replicas
    context: Context
    clock: Clock
    failures: list[LogDirFailed] = field(default_factory=list)
    troubles: list[tuple[str, Exception]] = field(default_factory=list)

    @property
    def manual(self) -> ManualClock:
        assert isinstance(self.clock, ManualClock), "the clock runs by itself"
        return self.clock

    async def apply(self, cluster: ClusterImage) -> None:
        self.context.image = cluster
        await self.replicas.apply(cluster, ME)

    def leader(self, name: str = "t", index: int = 0) -> Partition:
        return self.replicas.leader(name, index)

    def call(self, message: Message, version: int, line: Line | None = None) -> Call:
        assert message.KEY is not None
        request = Request(APIS[message.KEY], version, 1, "test", memoryview(b""), 0)
        return Call(request, line or Line(), 0.0)

    def ask(self, module: Any, message: Message, version: int, line: Line | None = None) -> Line:
        """Asks a handler, with the request as it comes from the wire; the answer is on the line."""
        line = line or Line()
        call = self.call(message, version, line)
        body = bytearray(b"".join(bytes(b) for b in codec(type(message), version).encode(message)))
        request = codec(type(message), version).decode(memoryview(body))
        answer = module.handle(self.context, call, request)
        if answer is not None:
            call.answer(answer)
        return line

    async def ask_async(self, module: Any, message: Message, version: int) -> Any:
        """The same for a handler that is a coroutine; returns the answer."""
        line = Line()
        call = self.call(message, version, line)
        call.answer(await module.handle(self.context, call, message))
        return line.answers[0]

    async def pass_time(self, milliseconds: int) -> None:
        """Moves the clock, and ends what was to end by then."""
        self.manual.advance(milliseconds)
        self.replicas.deadlines.expire_due()
        await asyncio.sleep(0)


@asynccontextmanager
async def rig(
    folder: Path,
    cluster: ClusterImage | None = None,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    room: WaitRoom | None = None,
    store: Any = None,
) -> AsyncIterator[Rig]:
    """Parts over the logs in `folder`, with an image applied; what is not closed is abandoned."""
    loop = asyncio.get_running_loop()
    clock = clock or ManualClock()
    disk = files or UnsyncedFiles()
    log_dir = LogDir(
        str(folder), files=disk, handles=Handles(disk, max_open=64), config_for=before_metadata
    )
    log_dir.load_all()
    failures: list[LogDirFailed] = []
    troubles: list[tuple[str, Exception]] = []
    flusher = Flusher(loop, clock=clock, on_log_dir_failed=failures.append)
    flusher.start()
    replicas = Replicas(
        log_dir,
        loop=loop,
        clock=clock,
        flusher=flusher,
        on_log_dir_failed=failures.append,
        on_trouble=lambda event, error: troubles.append((event, error)),
        room=room,
    )
    context = Context(
        config=BrokerConfig(agent_socket="", log_dir=str(folder)),
        clock=clock,
        loop=loop,
        store=store,
        metrics=Metrics(),
        replicas=replicas,
        fetch_sessions=FetchSessions(clock=clock),
        producer_ids=ProducerIds(log_dir.handles.producer_ids, save=log_dir.save_producer_ids),
    )
    context.broker_id = ME
    context.is_serving = True
    built = Rig(replicas, context, clock, failures, troubles)
    await built.apply(cluster or image(topic()))
    try:
        yield built
    finally:
        if isinstance(disk, GatedFiles):
            disk.gate.set()
        await flusher.stop()
        replicas.recompressor.stop()


async def until(fact: Callable[[], bool]) -> None:
    """Lets the loop turn until something is true."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not fact():  # noqa: ASYNC110 - the facts are of many kinds
            await asyncio.sleep(0)
