"""Members of groups as scripts: each says what it asks next, and is sent the answer.

A script is a generator; one loop drives hundreds of them, each over a connection of its own, since
a join that waits for others blocks the connection by which it came. What a script asks for is a
message, or a pause in which its member has nothing to say.
"""

import select
import socket
import struct
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, TypeAlias

from bench.blaster import framed
from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from brokers.protocol.messages.heartbeat import HeartbeatRequest
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from brokers.protocol.schema import Message

# The versions that are spoken, by the key of the API.
VERSIONS: Final[Mapping[int, int]] = {8: 9, 10: 4, 11: 9, 12: 4, 14: 5, 68: 1, 69: 0}
CORRELATION: Final = struct.Struct(">i")
CORRELATION_POSITION: Final = 8
SESSION_MS: Final = 300_000
REBALANCE_MS: Final = 60_000
RECEIVE_BYTES: Final = 256 * 1024
# Scripts that hear nothing for so long have failed.
SILENCE_SECONDS: Final = 60.0
# Reading an empty partition takes a few milliseconds.
LOADING_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to ask for that long."""

    seconds: float


Asked: TypeAlias = Message | Pause
Script: TypeAlias = Generator[Asked, Any, None]


@dataclass(slots=True, kw_only=True)
class Membership:
    """What a script has learned by now."""

    group: str
    member_id: str = ""
    epoch: int = 0  # or the generation
    asked_s: float = 0.0  # when it had nothing more to do for the rebalance but to wait
    joined_s: float = 0.0  # when the wait for others was over
    settled_s: float = 0.0
    owned: set[tuple[bytes, int]] = field(default_factory=set)


class _Line:
    """One connection with its script."""

    __slots__ = ("_buffer", "_numbers", "asked", "script", "socket")

    def __init__(self, address: tuple[str, int], script: Script) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.script = script
        self.asked: Message | None = None
        self._numbers = count(1)
        self._buffer = bytearray()

    def ask(self, message: Message) -> None:
        key = message.KEY
        assert key is not None, "a request has the key of its API"
        frame = framed(key, VERSIONS[key], codec(type(message), VERSIONS[key]).encode(message))
        CORRELATION.pack_into(frame, CORRELATION_POSITION, next(self._numbers))
        self.asked = message
        self.socket.sendall(frame)

    def received(self, data: bytes | memoryview) -> Message | None:
        """The answer, once it is whole."""
        self._buffer += data
        if len(self._buffer) < 4 or len(self._buffer) < 4 + int.from_bytes(self._buffer[:4], "big"):
            return None
        assert self.asked is not None, "an answer to nothing"
        key = self.asked.KEY
        assert key is not None
        api, version = APIS[key], VERSIONS[key]
        # Behind the correlation id, flexible answers have tagged fields, of which there are none.
        body = memoryview(bytes(self._buffer))[8 + api.is_flexible(version) :]
        self._buffer.clear()
        self.asked = None
        answer: Message = codec(api.response, version).decode(body)
        return answer


def play(
    address: tuple[str, int],
    scripts: Sequence[Script],
    *,
    is_over: Callable[[], bool] | None = None,
) -> None:
    """Drives scripts until all have ended, or it is over; then every connection is closed."""
    stage = _Stage(address, scripts)
    try:
        stage.play(is_over or (lambda: False))
    finally:
        stage.close()


class _Stage:
    """All scripts with their connections."""

    def __init__(self, address: tuple[str, int], scripts: Sequence[Script]) -> None:
        self._lines = {
            line.socket.fileno(): line for line in (_Line(address, each) for each in scripts)
        }
        self._pauses: list[tuple[float, int]] = []  # a heap of when, and whose
        self._running = len(self._lines)
        self._poll = select.epoll()

    def play(self, is_over: Callable[[], bool]) -> None:
        buffer = memoryview(bytearray(RECEIVE_BYTES))
        pauses, heard = self._pauses, time.monotonic()
        for fd in self._lines:
            self._poll.register(fd, select.EPOLLIN)
            self._go_on(fd, None)
        while self._running and not is_over():
            while pauses and pauses[0][0] <= time.monotonic():
                self._go_on(heappop(pauses)[1], None)
            wait = max(0.0, pauses[0][0] - time.monotonic()) if pauses else SILENCE_SECONDS
            for fd, _event in self._poll.poll(wait) if self._running else ():
                heard = time.monotonic()
                self._receive(fd, buffer)
            if time.monotonic() - heard > SILENCE_SECONDS:
                raise TimeoutError(f"no answer for {SILENCE_SECONDS} s")

    def close(self) -> None:
        self._poll.close()
        for line in self._lines.values():
            line.script.close()
            line.socket.close()

    def _receive(self, fd: int, buffer: memoryview) -> None:
        line = self._lines[fd]
        size = line.socket.recv_into(buffer)
        if not size:
            raise ConnectionError("the broker closed the connection: see its log")
        answer = line.received(buffer[:size])
        if answer is not None:
            self._go_on(fd, answer)

    def _go_on(self, fd: int, answer: Message | None) -> None:
        """The next step of a script."""
        line = self._lines[fd]
        try:
            asked = line.script.send(answer)
        except StopIteration:
            self._running -= 1
            return
        if isinstance(asked, Pause):
            heappush(self._pauses, (time.monotonic() + asked.seconds, fd))
        else:
            line.ask(asked)


def once_loaded(request: Message) -> Generator[Any, Any, Any]:
    """Ask again while the coordinator reads its partition, as clients do; return the answer.

    FindCoordinator names a coordinator as soon as it has been chosen.
    """
    deadline = time.monotonic() + SILENCE_SECONDS
    while True:
        answer = yield request
        is_loading = answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if not is_loading or time.monotonic() > deadline:
            return answer
        yield Pause(LOADING_PAUSE_S)


def classic_member(me: Membership, topic: str) -> Script:
    """Joins, and stays until its generation is settled; joins again as often as it takes."""
    while not me.settled_s:
        answer = yield from once_loaded(_join(me, topic))
        me.joined_s = time.monotonic()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            me.member_id, me.asked_s = answer.member_id, me.joined_s
            continue
        assert answer.error_code == 0, f"JoinGroup was answered with {answer.error_code}"
        me.epoch = answer.generation_id
        given = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"\0" * 24)
            for member in answer.members
        ]
        answer = yield SyncGroupRequest(
            group_id=me.group,
            generation_id=me.epoch,
            member_id=me.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            continue
        assert answer.error_code == 0, f"SyncGroup was answered with {answer.error_code}"
        me.settled_s = time.monotonic()


def staying_member(
    me: Membership, topic: str, *, every_s: float, is_over: Callable[[], bool]
) -> Script:
    """A classic member that goes on with heartbeats, and joins again when one tells it to."""
    yield from classic_member(me, topic)
    while not is_over():
        yield Pause(every_s)
        answer = yield HeartbeatRequest(
            group_id=me.group, generation_id=me.epoch, member_id=me.member_id
        )
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            me.settled_s = 0.0
            yield from classic_member(me, topic)
        else:
            assert answer.error_code == 0, f"Heartbeat was answered with {answer.error_code}"


def consumer_member(
    me: Membership, topic: str, *, every_s: float, is_over: Callable[[], bool]
) -> Script:
    """A member of the consumer protocol, which says at once what it was given or has given up."""
    me.member_id = me.member_id or str(uuid.uuid4())
    nothing: list[TopicPartitions] = []
    joining = ConsumerGroupHeartbeatRequest(
        group_id=me.group,
        member_id=me.member_id,
        member_epoch=0,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=[topic],
        topic_partitions=nothing,
    )
    answer: ConsumerGroupHeartbeatResponse = yield from once_loaded(joining)
    while True:
        assert answer.error_code == 0, f"{answer.error_code}: {answer.error_message}"
        me.epoch = answer.member_epoch
        said = None
        if answer.assignment is not None:
            said = answer.assignment.topic_partitions
            me.owned = {(each.topic_id, index) for each in said for index in each.partitions}
        elif is_over():
            return
        else:
            yield Pause(every_s)
        answer = yield ConsumerGroupHeartbeatRequest(
            group_id=me.group,
            member_id=me.member_id,
            member_epoch=me.epoch,
            topic_partitions=said,
        )


def _join(me: Membership, topic: str) -> JoinGroupRequest:
    name = topic.encode()
    metadata = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)
    return JoinGroupRequest(
        group_id=me.group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=me.member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
