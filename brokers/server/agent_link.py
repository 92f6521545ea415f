"""Connects the broker to the agent of its host, its only source of the cluster's metadata.

Implements `MetadataStore`. Knows neither the database nor what the metadata means. After the first
registration the link maintains itself: after any loss it reconnects, registers the same
incarnation, follows from the last position that arrived, and repeats unanswered proposals
unchanged, so that a broker notices an agent's restart only by its silence.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Final, assert_never

from brokers.clock import Clock
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.link import (
    Applied,
    ChangeFrame,
    Follow,
    FrameReader,
    FrameTooLarge,
    FromAgent,
    FromBroker,
    MalformedFrame,
    Outcomes,
    Ping,
    Pong,
    Propose,
    Refused,
    Register,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotPart,
    decode_from_agent,
    encode,
)
from brokers.cluster.proposals import MAX_PROPOSALS, Outcome, Proposal
from brokers.cluster.store import MetadataRegressed, Registered, Registration, Update
from brokers.cluster.updates import Assembly, Backlog, FeedMessage
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.logs import Log
from brokers.slices import Slices

# Large enough that most parts of a snapshot take one read.
READ_BYTES: Final = 64 * 2**10
# A unix socket connects at once unless its owner is down; this allows for a machine under load.
CONNECT_SECONDS: Final = 5.0
# A registration is one transaction, which may wait for others.
REGISTER_SECONDS: Final = 10.0
# The agent sends every second. A link that is silent for longer than this counts as broken.
SILENT_SECONDS: Final = 5.0
# Pauses between two attempts to connect: an agent is back within a second of its end, and a
# hundred brokers that try twice a second cost nothing.
FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 0.5
# The longest pause if connections end at an unreadable message, which the next one may meet again;
# a session lasts longer than this.
LONGEST_UNREADABLE_SECONDS: Final = 2.0
# Enough to grow from the first pause to the longest one.
MAX_DOUBLINGS: Final = 6
# Connections that end so at one position. After the second, an accidental transmission error is
# ruled out, and the link requests the whole image in place of the unreadable change.
UNREADABLE_CONNECTIONS: Final = 2
# A connection that lasted this long was healthy, regardless of how it ended.
WELL_SECONDS: Final = 10.0
# An agent that was killed is back by then, and the impatient clients still wait: some give up after
# ten seconds.
PROPOSAL_SECONDS: Final = 9.0
# A database that refused a call twice, each time after the three seconds that the agent waits for
# it, is away for longer than a moment: the client gets the reason, and may repeat its request.
MAX_REFUSALS: Final = 2
# The agent has kept a proposal for some seconds already when it says "later".
LATER_SECONDS: Final = 0.2
# Unanswered calls. Further ones are refused; their clients may retry.
MAX_CALLS: Final = 64
# Unsent bytes that this process holds for an agent that does not read.
MAX_UNSENT_BYTES: Final = 8 * 2**20
# Images with this many topics are frozen, since the garbage collector would scan all of one at
# once: 29 ms for 10,000 topics, 3 ms for this many.
FROZEN_FROM_TOPICS: Final = 1000


@dataclass(slots=True, kw_only=True)
class _Call:
    """A call of `propose` that has no answer yet."""

    frame: bytes
    size: int
    answer: asyncio.Future[list[Outcome]]
    refusals: int = 0  # by the database


class AgentLink:
    """See the module. Belongs to one event loop; `register` first, `close` at the end."""

    def __init__(
        self,
        path: str,
        *,
        clock: Clock,
        log: Log | None = None,
        random: Random | None = None,
        proposal_seconds: float = PROPOSAL_SECONDS,
    ) -> None:
        self._path = path
        self._clock = clock
        self._log = log or Log(clock, component="broker")
        self._random = random or Random()  # noqa: S311 - spreads attempts, keeps no secret
        self._proposal_seconds = proposal_seconds
        self._registration: Registration | None = None
        self._registered: Registered | None = None
        # The newest connection, and the same one while it can be used.
        self._opened: _Connection | None = None
        self._connection: _Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._backlog: Backlog | None = None
        # Of the newest update that has arrived, for any reader.
        self._seen = Position()
        # Set if there is an update for the backlog's reader, or the reason why there are no more.
        self._arrived = asyncio.Event()
        self._failure: Exception | None = None
        self._calls: dict[int, _Call] = {}
        self._last_call = 0
        self._applied = 0
        self._has_followed = False
        # Where the last unreadable connections ended, and how many of them in a row.
        self._unreadable_at = Position()
        self._unreadable = 0
        self._database_seen = clock.monotonic()

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def database_age_ms(self) -> int:
        """The time since the cluster's database last answered, as the agent reports it."""
        return int(1000 * (self._clock.monotonic() - self._database_seen))

    async def register(self, registration: Registration) -> Registered:
        """Register as `MetadataStore` defines; from then on the link maintains itself."""
        await self.close()
        connection, registered = await self._connect(registration)
        self._registration, self._registered = registration, registered
        self._failure, self._applied = None, 0
        self._seen = registration.position
        self._opened = connection
        self._task = asyncio.create_task(self._keep_up(connection), name="agent link")
        self._task.add_done_callback(self._ended)
        return registered

    async def follow(self, after: Position) -> AsyncIterator[Update]:
        """Follow as `MetadataStore` defines. A second reader replaces the first, which ends."""
        backlog = self._backlog = Backlog(after)
        if self._task is not None and not self._task.done():
            self._failure = None
        self._has_followed = True
        if self._connection is not None:
            self._connection.follow(backlog.position)
            self._send_calls()
        try:
            while self._backlog is backlog:
                update = backlog.take()
                if update is not None:
                    yield update
                    continue
                if self._failure is not None:
                    raise self._failure
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            if self._backlog is backlog:
                self._backlog = None

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Propose as `MetadataStore` defines; repeat until answered, refused or out of time.

        ConnectionError says why there is no outcome; the change may still happen.
        """
        assert len(proposals) <= MAX_PROPOSALS, f"{len(proposals)} proposals in one call"
        if self._task is None or len(self._calls) >= MAX_CALLS:
            raise ConnectionError(
                f"{len(self._calls)} calls wait for the agent, {MAX_CALLS} are allowed"
                if self._task is not None
                else "this broker has not registered"
            )
        self._last_call += 1
        number = self._last_call
        try:
            frame = encode(Propose(request_no=number, proposals=tuple(proposals)))
        except FrameTooLarge as error:
            refusal = Outcome(
                error=ErrorCode.POLICY_VIOLATION, message=f"{error}; ask for less at a time"
            )
            return [refusal] * len(proposals)
        answer: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._calls[number] = _Call(frame=frame, size=len(proposals), answer=answer)
        try:
            self._send_call(number)
            async with asyncio.timeout(self._proposal_seconds):
                return await answer
        except TimeoutError as error:
            state = "has not answered" if self.is_connected else "was not connected"
            raise ConnectionError(
                f"the agent of this host {state} within {self._proposal_seconds:g} s"
            ) from error
        finally:
            del self._calls[number]

    def applied(self, version: int) -> None:
        self._applied = max(self._applied, version)
        if self._connection is not None:
            self._connection.send(Applied(version=self._applied))

    async def close(self) -> None:
        """Close the link; waiting callers get a ConnectionError."""
        task, self._task = self._task, None
        if task is None:
            return
        self._fail(ConnectionError("the link was closed"))
        task.cancel()
        await asyncio.wait([task])
        if self._opened is not None:
            # The task may not even have begun with it.
            self._opened.close()
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_exception(ConnectionError("the link was closed"))

    async def _connect(self, registration: Registration) -> "tuple[_Connection, Registered]":
        """Return a connection on which this broker is registered."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._path)
        except (OSError, TimeoutError) as error:
            raise ConnectionError(f"the agent does not listen on {self._path}: {error}") from error
        connection = _Connection(reader, writer)
        with ExitStack() as failing:
            # For any error, also a cancellation: no other code holds this connection.
            failing.callback(connection.close)
            try:
                registered = await _introduce(connection, registration)
            except _LOST as error:
                raise ConnectionError(f"the agent has not answered: {error!r}") from error
            failing.pop_all()
        return connection, registered

    async def _keep_up(self, connection: "_Connection") -> None:
        while True:
            began = self._clock.monotonic()
            try:
                await self._converse(connection)
            except _LOST as error:
                self._log.limited("agent_link.lost", "lost", error=repr(error))
                self._note_end(error, lasted=self._clock.monotonic() - began)
            except KafkaError as error:
                self._fail(error)
            finally:
                self._connection = None
                connection.close()
                # A snapshot may have been cut short.
                gc.enable()
            connection = self._opened = await self._connect_again()

    def _note_end(self, error: Exception, *, lasted: float) -> None:
        """Count connections that end at an unreadable message; restart after the second."""
        is_unreadable = isinstance(error, MalformedFrame)
        if not is_unreadable or lasted > WELL_SECONDS:
            self._unreadable = 0
        if not is_unreadable:
            return
        self._unreadable += 1
        position = self._seen if self._backlog is None else self._backlog.position
        is_here = position == self._unreadable_at
        self._unreadable_at = position
        is_stuck = is_here and self._unreadable >= UNREADABLE_CONNECTIONS
        if is_stuck and self._backlog is not None and position != Position():
            self._log.limited(
                "agent_link.begins_anew",
                "unreadable",
                version=position.version,
                advice="the change behind this version cannot be read: update this host",
            )
            self._backlog.begin_anew()

    def _first_pause(self) -> float:
        doublings = min(self._unreadable, MAX_DOUBLINGS)
        return min(float(FIRST_PAUSE_SECONDS * 2**doublings), LONGEST_UNREADABLE_SECONDS)

    async def _connect_again(self) -> "_Connection":
        registration, before = self._registration, self._registered
        assert registration is not None, "a link that was up had registered"
        assert before is not None, "a link that was up had registered"
        # The agent knows the incarnation, and the id that it was given.
        pause = self._first_pause()
        while True:
            await asyncio.sleep(pause * self._random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            try:
                # Send the last position, so that a store that was restored from an older copy
                # refuses it, and does not take this for a new broker.
                connection, registered = await self._connect(
                    replace(
                        registration, applied_version=self._seen.version, applied_id=self._seen.id
                    )
                )
            except ConnectionError as error:
                self._log.limited("agent_link.not_connected", "not connected", error=str(error))
            except KafkaError as error:
                self._log.limited("agent_link.refused", "refused", error=str(error))
                self._fail(error)
            else:
                if registered.broker_epoch == before.broker_epoch:
                    self._log.info("agent_link.restored", epoch=registered.broker_epoch)
                    return connection
                connection.close()
                self._fail(
                    KafkaError(
                        ErrorCode.STALE_BROKER_EPOCH,
                        f"broker {registered.broker_id} was registered with epoch "
                        f"{before.broker_epoch} and is taken for a new one now, with epoch "
                        f"{registered.broker_epoch}: restart it",
                    )
                )

    async def _converse(self, connection: "_Connection") -> None:
        """Resume what was pending, then handle the agent's messages until the link breaks."""
        self._connection = connection
        if self._backlog is not None:
            connection.follow(self._backlog.position)
        if self._applied:
            connection.send(Applied(version=self._applied))
        self._send_calls()
        assembly = Assembly()
        slices = Slices(self._clock)
        async for message in connection.messages:
            match message:
                case Ping():
                    self._database_seen = self._clock.monotonic() - message.db_age_ms / 1000
                    connection.send(Pong())
                case Outcomes():
                    self._take_outcomes(message)
                case SnapshotBegin():
                    # Tens of thousands of new objects without a single reference cycle.
                    gc.disable()
                    await self._take_feed(message, assembly, slices)
                case SnapshotEnd():
                    await self._take_feed(message, assembly, slices)
                    gc.enable()
                case SnapshotPart() | ChangeFrame():
                    await self._take_feed(message, assembly, slices)
                case Refused():
                    raise _refusal(message)
                case Registered():
                    raise MalformedFrame("a second Registered")
                case _:
                    assert_never(message)

    async def _take_feed(self, message: FeedMessage, assembly: Assembly, slices: Slices) -> None:
        for update in assembly.take(message):
            await slices.breathe()
            backlog = self._backlog
            if update is None or backlog is None:
                continue
            if backlog.is_full:
                # Waiting for the reader would leave pings unanswered: the broker would look dead.
                backlog.begin_anew()
                raise ConnectionError("the changes came faster than they were taken")
            backlog.put(update)
            self._seen = update.position
            if isinstance(update, ClusterImage) and len(update.topics) >= FROZEN_FROM_TOPICS:
                gc.freeze()
            self._arrived.set()

    def _take_outcomes(self, message: Outcomes) -> None:
        call = self._calls.get(message.request_no)
        if call is None or call.answer.done():
            return
        call.refusals += bool(message.is_later and message.reason)
        if call.refusals >= MAX_REFUSALS:
            call.answer.set_exception(ConnectionError(message.reason))
        elif message.is_later:
            loop = asyncio.get_running_loop()
            loop.call_later(LATER_SECONDS, self._send_call, message.request_no)
        elif len(message.outcomes) != call.size:
            raise MalformedFrame(f"{len(message.outcomes)} outcomes for {call.size} proposals")
        else:
            call.answer.set_result(list(message.outcomes))

    def _send_call(self, number: int) -> None:
        """Send a call if it is still pending; without a link, the next connection sends it."""
        call, connection = self._calls.get(number), self._connection
        if call is None or connection is None:
            return
        # After the position on the same connection, so that a store that was restored from an
        # older copy refuses the call before it does anything.
        if connection.is_following or not self._has_followed:
            connection.write(call.frame)

    def _send_calls(self) -> None:
        for number in list(self._calls):
            self._send_call(number)

    def _fail(self, error: Exception) -> None:
        """Pass the error to the reader."""
        self._failure = error
        self._arrived.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            # A bug: it must not look like an agent that has no news.
            self._fail(ConnectionError(f"the link to the agent failed: {error!r}"))
            self._log.bug("agent_link.failed", error)


class _Connection:
    """One connection to the agent, which decodes and encodes messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_following = False
        # How long the agent may be silent.
        self.patience = REGISTER_SECONDS
        self.messages = self._read()

    def send(self, message: FromBroker) -> None:
        self.write(encode(message))

    def write(self, frame: bytes) -> None:
        transport = self._writer.transport
        if transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            # The agent does not read: the next connection sends everything again.
            transport.abort()
        elif not transport.is_closing():
            transport.write(frame)

    def follow(self, after: Position) -> None:
        if self.is_following:
            # The agent accepts one Follow per connection; the next one begins with this.
            self.close()
        else:
            self.is_following = True
            self.send(Follow(after=after))

    def close(self) -> None:
        self._writer.transport.abort()

    async def _read(self) -> AsyncIterator[FromAgent]:
        frames = FrameReader(decode_from_agent)
        while True:
            async with asyncio.timeout(self.patience):
                data = await self._reader.read(READ_BYTES)
            if not data:
                raise ConnectionError("the agent has hung up")
            for message in frames.feed(data):
                yield message


async def _introduce(connection: _Connection, registration: Registration) -> Registered:
    """Register on a new connection."""
    connection.send(Register(registration=registration))
    answer = await anext(connection.messages)
    match answer:
        case Registered():
            connection.patience = SILENT_SECONDS
            return answer
        case Refused():
            raise _refusal(answer)
        case _:
            raise MalformedFrame(f"{type(answer).__name__} in answer to a registration")


# Errors that end a connection and that the next one recovers from.
_LOST: Final = (OSError, TimeoutError, MalformedFrame)


def _refusal(message: Refused) -> KafkaError:
    if message.error is ErrorCode.POSITION_OUT_OF_RANGE:
        return MetadataRegressed.told(message.message)
    return KafkaError(message.error, message.message)
