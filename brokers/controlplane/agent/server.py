"""Serves the agent's socket: one connection for each broker of this host.

Uses the protocol of `brokers.cluster.link`. A broker's `Attachment` answers all its messages; this
module knows connections, their order and their limits, and nothing about clusters. Bytes from a
broker are not trusted: invalid ones close its connection.
"""

import asyncio
import os
import select
from contextlib import aclosing, suppress
from pathlib import Path
from socket import SO_PEERCRED, SOL_SOCKET
from struct import Struct
from traceback import format_exception
from typing import Final

from brokers.cluster import link
from brokers.cluster.image import Position
from brokers.cluster.store import MetadataRegressed
from brokers.controlplane.agent.processes import identity_of
from brokers.controlplane.history import Entry
from brokers.controlplane.logs import log
from brokers.controlplane.membership import Attachment, Membership
from brokers.protocol.errors import ErrorCode, KafkaError

READ_BYTES: Final = 64 * 2**10
# Unsent bytes for a slow reader, above which its feed pauses.
WRITE_AHEAD_BYTES: Final = 2**20
# A broker registers as soon as it is connected.
REGISTER_WITHIN_S: Final = 10.0
PING_EVERY_S: Final = 1.0
# Calls of one broker in progress: as many as a broker leaves open. Further ones are answered with
# "later", so that the agent keeps reading the link, with its answers to pings.
MAX_CALLS: Final = 64
# The bytes of unanswered calls, unless a single call is larger: decoded, a frame can take thirty
# times its size.
MAX_CALL_BYTES: Final = 4 * 2**20
# Of an error of the database; some repeat the statement.
MAX_REASON_CHARS: Final = 500
# Far more brokers than a host has cores, and few enough descriptors.
MAX_CONNECTIONS: Final = 256
# A socket's record of the process at its other end: pid, user, group.
CREDENTIALS: Final = Struct("3i")


class AgentServer:
    """See the module. `start` listens; `close` closes all connections."""

    def __init__(self, membership: Membership, *, path: Path) -> None:
        self._membership = membership
        self._path = path
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen; the holder of the home's lock may replace a socket that a dead agent has left."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        self._path.chmod(0o600)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._connections.add(task)
        try:
            if len(self._connections) <= MAX_CONNECTIONS:
                await _Connection(self._membership, reader, writer).serve()
            else:
                log.limited("link.refused", connections=len(self._connections))
        except asyncio.CancelledError:
            # The agent stops: the broker sees its link cut and looks for the next agent.
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()


class _HungUp(Exception):
    """The connection is over, for an ordinary reason."""


class _Connection:
    """The link of one broker, for the lifetime of its connection."""

    def __init__(
        self,
        membership: Membership,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._store = membership.store
        self._membership = membership
        self._reader = reader
        self._writer = writer
        self._pid = _pid_of(writer)
        self._attachment = Attachment(membership, process=identity_of(self._pid))
        # The bytes of every call in progress.
        self._calls: list[int] = []
        self._is_following = False
        writer.transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)

    async def serve(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(tasks))
        except* (_HungUp, ConnectionError):
            pass
        except* KafkaError as refusals:
            await self._refuse(refusals)
        except* link.MalformedFrame as malformed:
            log.limited("link.malformed", error=str(malformed.exceptions[0]))
        # A bug on one broker's connection must not end the others.
        except* Exception as bugs:  # noqa: BLE001
            log.error("link.failed", error=repr(bugs), exception="".join(format_exception(bugs)))
        finally:
            self._attachment.close()

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        frames = link.FrameReader(_sized)
        try:
            async with asyncio.timeout(REGISTER_WITHIN_S) as deadline:
                while data := await self._reader.read(READ_BYTES):
                    for size, message in frames.feed(data):
                        await self._take(message, size, tasks)
                        deadline.reschedule(None)
        except TimeoutError:
            log.limited("link.silent", seconds=REGISTER_WITHIN_S)
        raise _HungUp

    async def _take(self, message: link.FromBroker, size: int, tasks: asyncio.TaskGroup) -> None:
        if isinstance(message, link.Register):
            await self._register(message)
            tasks.create_task(self._ping())
            return
        if self._attachment.session is None:
            raise link.MalformedFrame(f"{type(message).__name__} before Register")
        match message:
            case link.Follow(after=after):
                if self._is_following:
                    raise link.MalformedFrame("a second Follow")
                self._is_following = True
                # Before any later message is handled.
                self._store.check(after)
                tasks.create_task(self._feed(after))
            case link.Propose() if self._has_room(size):
                self._calls.append(size)
                tasks.create_task(self._propose(message, size))
            case link.Propose(request_no=number):
                await self._send_whole(_later(number))
            case link.Applied(version=version):
                self._attachment.applied(version)
            case link.Pong():
                self._attachment.answered()

    async def _register(self, message: link.Register) -> None:
        if message.link_version != link.LINK_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker speaks version {message.link_version} of the link, its agent "
                f"{link.LINK_VERSION}: restart both from one checkout",
            )
        if self._attachment.session is not None:
            raise link.MalformedFrame("a second Register")
        # An agent that could not run finds the links of brokers that have ended meanwhile, whose
        # registrations would keep their successors out.
        if self._has_peer_gone():
            raise _HungUp
        self._send(link.encode(await self._attachment.register(message.registration)))

    def _has_peer_gone(self) -> bool:
        """Tell whether the broker has closed its end or has ended, as far as it is visible."""
        if self._pid and not identity_of(self._pid):
            return True
        ends = select.poll()
        ends.register(self._writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(ends.poll(0))

    async def _feed(self, after: Position) -> None:
        """Send all changes after a position; a slow reader does not delay others."""
        async with aclosing(self._attachment.updates(after)) as updates:
            async for update in updates:
                for frame in (
                    [update.encoded] if isinstance(update, Entry) else link.encode_snapshot(update)
                ):
                    await self._send_whole(frame)

    def _has_room(self, size: int) -> bool:
        if not self._calls:
            return True
        return len(self._calls) < MAX_CALLS and sum(self._calls) + size <= MAX_CALL_BYTES

    async def _propose(self, message: link.Propose, size: int) -> None:
        try:
            outcomes = await self._attachment.propose(message.proposals)
            answer = link.encode(
                link.Outcomes(request_no=message.request_no, outcomes=tuple(outcomes))
            )
        except ConnectionError as error:
            answer = _later(message.request_no, str(error).strip()[:MAX_REASON_CHARS])
        # A call lasts until its answer is mostly read, which bounds the unsent answers.
        await self._send_whole(answer)
        self._calls.remove(size)

    async def _ping(self) -> None:
        session = self._attachment.session
        while session is not None and self._membership.is_current(session):
            self._send(link.encode(link.Ping(db_age_ms=self._store.read_age_ms)))
            await asyncio.sleep(PING_EVERY_S)
        # Its session is over, so the broker must register again.
        raise _HungUp

    async def _send_whole(self, frame: bytes) -> None:
        """Send a message that may be large; return when a slow reader has taken most of it."""
        self._send(frame)
        await self._writer.drain()

    def _send(self, frame: bytes) -> None:
        if self._writer.is_closing():
            raise _HungUp
        self._writer.write(frame)

    async def _refuse(self, refusals: BaseExceptionGroup[KafkaError]) -> None:
        refusal = refusals.exceptions[0]
        while isinstance(refusal, BaseExceptionGroup):
            refusal = refusal.exceptions[0]
        event = "metadata.regressed" if isinstance(refusal, MetadataRegressed) else "link.refused"
        # A refused broker retries twice a second.
        log.limited(event, error=refusal.message, code=refusal.code.name)
        with suppress(_HungUp, ConnectionError):
            self._send(link.encode(link.Refused(error=refusal.code, message=refusal.message)))
            await self._writer.drain()
            self._writer.close()
            await self._writer.wait_closed()


def _sized(body: bytes) -> tuple[int, link.FromBroker]:
    return len(body), link.decode_from_broker(body)


def _later(request_no: int, reason: str = "") -> bytes:
    later = link.Outcomes(request_no=request_no, outcomes=(), is_later=True, reason=reason)
    return link.encode(later)


def _pid_of(writer: asyncio.StreamWriter) -> int:
    """Return the process at the other end, from the kernel; 0 from another namespace."""
    socket = writer.get_extra_info("socket")
    packed = socket.getsockopt(SOL_SOCKET, SO_PEERCRED, CREDENTIALS.size)
    pid: int = CREDENTIALS.unpack(packed)[0]
    # The agent's own process: the broker is part of a test.
    return 0 if pid == os.getpid() else pid
