"""Executes the decisions of a socket's session, and reports the results to it.

One task receives, one sends, and each subscription has one that reads. A client that reads nothing
is waited for: its readings pause, and then its frames are no longer received either.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway.access.callers import Caller
from gateway.addresses import Network
from gateway.kafka.delivery import size_of
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.member import Reset
from gateway.kafka.readers.engine import Readers, TooManyReadings
from gateway.kafka.readers.following import Follow
from gateway.kafka.readers.reading import Reading
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Delivered, Place, Position, Record
from gateway.rest.calls import LET_IN, Receive, Scope, Send
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.desk import Desk, Limits, Watching
from gateway.rest.router import Callers
from gateway.rest.seats import Seats
from gateway.rest.traffic import Counter
from gateway.ws import actions as decided
from gateway.ws.actions import Action, Close
from gateway.ws.group_reading import GroupReading, Member
from gateway.ws.outbox import Outbox
from gateway.ws.session import Session

log: Final = logging.getLogger(__name__)
# How long a socket may be open without authentication.
AUTH_S: Final = 10.0
# A client that reads nothing for this long is treated as gone.
STUCK_S: Final = 60.0
# The final message must be sent within this; a terminating process waits for it.
LAST_WORD_S: Final = 1.0
# Stop reading records for a client with this much unsent, in characters, which are bytes.
MAX_UNSENT: Final = 128 * 1024
# Then stop receiving its frames, too: receipts and answers are sent beside records.
MAX_UNSENT_ANSWERS: Final = 512 * 1024
# An empty read is retried after this; the exact interval is unimportant.
TAKE_S: Final = 30.0
# How often an idle member polls its group, and how long it may go without credit.
LOOK_S: Final = 1.0
# How often a member looks for new topics of its pattern; as often as topics are listed for readers
# without a group.
LOOK_FOR_TOPICS_S: Final = 10.0
NO_CREDIT_S: Final = 300.0
# Frames that are processed in a row before other tasks run.
IN_A_ROW: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The objects that the sockets of a worker share."""

    callers: Callers
    watch: Watching
    limits: Limits
    desk: Desk
    readers: Readers
    traffic: Counter
    seats: Seats
    member_seats: Seats
    # Creates a member; without a committed offset it starts at the end, or at the beginning.
    member: Callable[[str, Reset], Member]
    cluster_id: str
    # Proxies whose client address is trusted.
    trusted: Sequence[Network] = ()


@dataclass(slots=True)
class Feeding:
    """The tasks and readers of one subscription."""

    task: asyncio.Task[None] | None = None
    reading: Reading | None = None
    group: GroupReading | None = None
    # The offsets to commit next, all at once.
    acks: dict[Place, int] = field(default_factory=dict)
    acking: asyncio.Task[None] | None = None
    # Of a group: the partitions that shall be paused, and those that are.
    paused: set[Place] = field(default_factory=set)
    held: set[Place] = field(default_factory=set)
    holding: asyncio.Task[None] | None = None
    # The running seek.
    moving: asyncio.Task[None] | None = None
    # Looks for new topics of the pattern of a group's member.
    following: asyncio.Task[None] | None = None
    more: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        begun = (self.task, self.acking, self.holding, self.moving, self.following)
        return [task for task in begun if task is not None]


class Connection:
    """Belongs to one event loop."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, house: House) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._house = house
        self._session = Session(house.cluster_id)
        self._outbox = Outbox()
        self._feedings: dict[str, Feeding] = {}
        self._stack = ExitStack()
        self._settled_one = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_unknown(self) -> bool:
        return self._session.caller is None

    async def run(self, caller: Caller | None) -> None:
        """Serve an accepted socket until it ends."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._listen()), loop.create_task(self._speak())]
        late = loop.call_later(AUTH_S, lambda: self._follow(self._session.late()))
        try:
            if caller is not None:
                self._let_in(caller)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            late.cancel()
            tasks += [self._watching] if self._watching is not None else []
            for feeding in self._feedings.values():
                tasks += feeding.tasks
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._stack.close()
        for task in done:
            task.result()

    def drain(self) -> None:
        self._follow(self._session.drain())

    # --- what is to be done ------------------------------------------------------------------

    def _follow(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self._perform(action)

    def _perform(self, action: Action) -> None:
        match action:
            case decided.Say(text):
                self._outbox.put(text)
            case Close():
                self._outbox.put(action)
            case decided.Open(sid=sid):
                feeding = self._feedings[sid] = Feeding()
                feeding.task = asyncio.create_task(self._feed(feeding, action))
            case decided.Join(sid=sid):
                feeding = self._feedings[sid] = Feeding()
                feeding.task = asyncio.create_task(self._belong(feeding, action))
            case decided.Commit(sid=sid, offsets=offsets):
                self._ack(sid, self._feedings[sid], offsets)
            case decided.Move(sid=sid, starts=starts):
                feeding = self._feedings[sid]
                feeding.moving = asyncio.create_task(self._move(sid, feeding, starts))
            case decided.Drop(sid=sid, places=dropped):
                # A reading that is still being opened is checked once it is open.
                if (reading := self._feedings[sid].reading) is not None:
                    reading.drop(dropped)
            case decided.Hold(sid=sid, places=places, is_paused=is_paused):
                self._hold(sid, self._feedings[sid], places, is_paused=is_paused)
            case decided.Feed(sid=sid):
                self._feedings[sid].more.set()
            case decided.LetGo(sid=sid):
                for task in self._feedings.pop(sid).tasks:
                    task.cancel()

    # --- the client --------------------------------------------------------------------------

    async def _listen(self) -> None:
        heard = 0
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            actions = self._session.heard_bytes() if text is None else self._session.heard(text)
            for action in actions:
                match action:
                    case decided.Identify(token):
                        await self._identify(token)
                    case decided.Send():
                        await self._produce(action, len(text or ""))
                    case _:
                        self._perform(action)
            await self._outbox.room(MAX_UNSENT_ANSWERS)
            heard += 1
            if heard % IN_A_ROW == 0:
                await asyncio.sleep(0)

    async def _speak(self) -> None:
        """Send until the final message; a client that has left, or reads nothing, gets none."""
        try:
            while True:
                item = await self._outbox.next()
                if isinstance(item, Close):
                    async with asyncio.timeout(LAST_WORD_S):
                        await self._send(
                            {"type": "websocket.close", "code": item.code, "reason": item.reason}
                        )
                    return
                async with asyncio.timeout(STUCK_S):
                    await self._send({"type": "websocket.send", "text": item})
                self._outbox.sent(item)
                if self._session.caller is not None:
                    self._house.traffic.add(self._session.caller.key, bytes_out=len(item))
        except TimeoutError:
            log.info("ws.stuck client=%s", self._scope.get("client"))
        except OSError:
            # Raised by uvicorn when the client has disconnected.
            pass

    # --- who it is ---------------------------------------------------------------------------

    async def _identify(self, token: str) -> None:
        scope = shown(self._scope, token)
        try:
            caller = await self._house.callers.of(scope)
        except ApiError as error:
            self._follow(self._session.failed(error))
            return
        self._scope = scope
        self._let_in(caller)

    def _let_in(self, caller: Caller) -> None:
        if self._session.caller is None:
            try:
                self._stack.enter_context(self._house.seats.taken(caller))
            except ApiError as error:
                self._follow(self._session.failed(error))
                return
            self._stack.enter_context(self._house.traffic.opened(caller.key))
            self._house.traffic.add(caller.key, requests=1)
            # Absent without the gateway's own server.
            if let_in := self._scope.get(LET_IN):
                let_in()
        self._follow(self._session.known(caller))
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._watch(caller))

    async def _watch(self, caller: Caller) -> None:
        """End the socket of a caller that is no longer valid, and what it may no longer read."""

        def holds(found: Caller) -> bool:
            self._follow(self._session.known(found))
            return True

        self._follow(self._session.failed(await self._house.watch(caller, holds)))

    # --- records that are written ------------------------------------------------------------

    async def _produce(self, action: decided.Send, size: int) -> None:
        house, record, caller = self._house, action.record, self._session.caller
        assert caller is not None, "a caller without a name writes"
        settled = partial(self._settled, action.id, action.topic)
        try:
            while self._session.is_full:
                self._settled_one.clear()
                await self._settled_one.wait()
            await self._be_throttled(action, caller)
            if not house.desk.is_ready(action.topic, record.partition):
                await house.desk.ready(caller, action.topic, record.partition)
            house.desk.deliveries.send(action.topic, record, settled)
        except (ApiError, KafkaFailure) as failed:
            settled(failed)
        house.traffic.add(caller.key, records=1, bytes_in=size)

    async def _be_throttled(self, action: decided.Send, caller: Caller) -> None:
        """Wait until the caller may write the record, after announcing that."""
        size = size_of(action.record)
        if wait_s := self._house.limits.take_records(caller, 1, size):
            self._follow(self._session.throttled(action.id, wait_s))
            await asyncio.sleep(wait_s)

    def _settled(self, name: str, topic: str, told: Delivered | Exception) -> None:
        self._follow(self._session.settled(name, topic, told))
        self._settled_one.set()

    # --- records that are read ---------------------------------------------------------------

    async def _feed(self, feeding: Feeding, opening: decided.Open) -> None:
        sid = opening.sid
        try:
            reading = feeding.reading = await self._opened(opening)
        except Exception as failed:  # noqa: BLE001 - it ends this subscription, and no other
            self._fail(sid, failed)
            return
        try:
            self._follow(self._session.opened(sid, reading.positions))
            await self._pump(sid, feeding, reading)
        finally:
            reading.close()

    def _fail(self, sid: str, failed: Exception) -> None:
        """End a failed subscription, but neither the others nor the socket."""
        if not isinstance(failed, ApiError | KafkaFailure):
            log.error("ws.not_opened", exc_info=failed)
        self._follow(self._session.not_opened(sid, failed))

    async def _opened(self, opening: decided.Open) -> Reading:
        readers, session, sid = self._house.readers, self._session, opening.sid
        starts = dict(opening.starts)
        try:
            if opening.pattern is not None:
                found = await readers.matching(opening.pattern, session.readable)
            else:
                found = await readers.partitions(opening.topics) if opening.topics else {}
            for topic, indexes in found.items():
                for index in indexes:
                    starts[Place(topic=topic, partition=index)] = opening.start
            session.reserve(sid, starts)
            follow = Follow(
                topics=opening.topics,
                pattern=opening.pattern,
                owner="" if session.caller is None else session.caller.key,
                readable=lambda: session.readable,
                reserve=partial(session.take_up, sid),
            )
            has_more = bool(opening.topics) or opening.pattern is not None
            return await readers.open(starts, follow=follow if has_more else None)
        except TooManyReadings as full:
            raise ApiError(Code.TOO_MANY, str(full), retry_after_s=1) from None

    async def _pump(self, sid: str, feeding: Feeding, reading: Reading) -> None:
        while True:
            allowed = self._session.allowance(sid)
            if allowed is None:
                feeding.more.clear()
                await feeding.more.wait()
                continue
            if self._outbox.size >= MAX_UNSENT:
                await self._outbox.room(MAX_UNSENT)
                # It may have been paused or moved by now.
                continue
            # Take and add without an await in between: of all that wait for room, one gets it.
            records, size = allowed
            ends = reading.ends
            news = reading.take_now(max_records=records, max_bytes=size)
            if not news:
                await reading.wait(TAKE_S)
                continue
            ends |= reading.ends
            self._count_read(sum(isinstance(one, Record) for one in news))
            self._follow(self._session.read(sid, news, ends))
            # Existing records are read without a wait, so let other tasks run.
            await asyncio.sleep(0)

    def _count_read(self, records: int) -> None:
        if self._session.caller is not None:
            self._house.traffic.add(self._session.caller.key, records=records)

    # --- records of a group ------------------------------------------------------------------

    async def _belong(self, feeding: Feeding, joining: decided.Join) -> None:
        """Be a member of a group for the lifetime of a subscription."""
        sid, caller = joining.sid, self._session.caller
        assert caller is not None, "a caller without a name subscribes"
        reset = Reset.EARLIEST if joining.is_from_earliest else Reset.LATEST
        try:
            async with self._house.member_seats.reserved(caller):
                reading = GroupReading(self._house.member(joining.group, reset))
                try:
                    await self._join(feeding, joining, reading)
                    self._follow(self._session.joined(sid))
                    await self._pump_group(sid, feeding, reading)
                finally:
                    reading.close(feeding.acks)
        except Exception as failed:  # noqa: BLE001 - as in _feed
            self._fail(sid, failed)

    async def _join(self, feeding: Feeding, joining: decided.Join, reading: GroupReading) -> None:
        readers, topics = self._house.readers, joining.topics
        if joining.pattern is None:
            # Report a missing topic at once; a group would wait for it.
            await readers.partitions(topics)
        else:
            topics = await self._matched(joining.sid, joining.pattern)
            looking = self._look_for_topics(joining.sid, joining.pattern, reading, topics)
            feeding.following = asyncio.create_task(looking)
        await reading.join(topics)
        feeding.group = reading

    async def _matched(self, sid: str, pattern: TopicPattern) -> Sequence[str]:
        """Return the readable topics that a group's member reads at present."""
        try:
            topics = await self._house.readers.names(pattern, self._session.readable)
        except TooManyReadings as full:
            raise ApiError(Code.TOO_MANY, str(full)) from None
        self._session.matched(sid, topics)
        return topics

    async def _look_for_topics(
        self, sid: str, pattern: TopicPattern, reading: GroupReading, topics: Sequence[str]
    ) -> None:
        """Let a member of a group read new topics of its pattern, for as long as it exists."""
        try:
            while True:
                await asyncio.sleep(LOOK_FOR_TOPICS_S)
                try:
                    found = await self._matched(sid, pattern)
                except KafkaFailure:
                    # No broker answers, which says nothing about topics.
                    continue
                if found != topics:
                    topics = found
                    await reading.join(topics)
        except Exception as failed:  # noqa: BLE001 - as in _feed
            self._fail(sid, failed)

    async def _pump_group(self, sid: str, feeding: Feeding, reading: GroupReading) -> None:
        clock = asyncio.get_running_loop().time
        used = clock()
        while True:
            allowed = self._session.allowance(sid)
            if allowed is None or self._outbox.size >= MAX_UNSENT:
                await reading.look()
                self._note_shares(sid, feeding, reading)
                if allowed is None and clock() - used >= NO_CREDIT_S:
                    self._follow(self._session.unused(sid))
                feeding.more.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await feeding.more.wait()
                continue
            used = clock()
            records, size = allowed
            found, ends = await reading.take(max_records=records, max_bytes=size)
            self._note_shares(sid, feeding, reading)
            self._count_read(len(found))
            self._follow(self._session.read(sid, found, ends))

    def _note_shares(self, sid: str, feeding: Feeding, reading: GroupReading) -> None:
        """Report assigned and revoked partitions; one that returns is not paused."""
        feeding.paused.intersection_update(reading.assignment)
        feeding.held.intersection_update(reading.assignment)
        self._follow(self._session.shared_out(sid, reading.assignment))

    def _ack(self, sid: str, feeding: Feeding, offsets: Mapping[Place, int]) -> None:
        feeding.acks.update(offsets)
        if feeding.acking is None or feeding.acking.done():
            feeding.acking = asyncio.create_task(self._commit(sid, feeding))

    async def _commit(self, sid: str, feeding: Feeding) -> None:
        assert feeding.group is not None, "only a group keeps offsets"
        while feeding.acks:
            offsets, feeding.acks = feeding.acks, {}
            failed = None
            try:
                await feeding.group.commit(offsets)
            except Exception as error:  # noqa: BLE001 - it is told to who asked, as every other
                failed = error
            self._follow(self._session.committed(sid, offsets, failed))

    # --- where it is read --------------------------------------------------------------------

    async def _move(self, sid: str, feeding: Feeding, starts: Mapping[Place, Position]) -> None:
        """Continue at other positions; unnamed partitions continue where they are."""
        session = self._session
        try:
            if feeding.group is not None:
                await feeding.group.seek(starts)
                told = session.moved(sid, {place: at.value for place, at in starts.items()})
            else:
                assert feeding.reading is not None, "only what is assigned moves"
                await self._house.readers.move(feeding.reading, starts)
                told = session.opened(sid, feeding.reading.positions)
        except Exception as failed:  # noqa: BLE001 - as in _feed
            if feeding.group is None:
                self._fail(sid, failed)
                return
            told = session.not_moved(sid, failed)
        self._follow(told)

    def _hold(
        self, sid: str, feeding: Feeding, places: Sequence[Place] | None, *, is_paused: bool
    ) -> None:
        reading = feeding.reading
        if reading is None:
            self._hold_of_group(sid, feeding, places, is_paused=is_paused)
        elif places is None:
            (reading.pause_all if is_paused else reading.resume_all)()
        else:
            (reading.pause if is_paused else reading.resume)(places)

    def _hold_of_group(
        self, sid: str, feeding: Feeding, places: Sequence[Place] | None, *, is_paused: bool
    ) -> None:
        """Pause or resume in the member's thread; requests during a turn are combined."""
        if is_paused:
            feeding.paused.update(places or ())
        else:
            feeding.paused.difference_update(list(feeding.paused) if places is None else places)
        if feeding.holding is None or feeding.holding.done():
            feeding.holding = asyncio.create_task(self._hold_as_asked(sid, feeding))

    async def _hold_as_asked(self, sid: str, feeding: Feeding) -> None:
        group = feeding.group
        assert group is not None, "only what a group has given is held"
        while feeding.paused != feeding.held:
            wanted, held = set(feeding.paused), feeding.held
            try:
                await group.hold(wanted - held, held - wanted)
            except Exception as failed:  # noqa: BLE001 - it is told to who asked
                feeding.paused = set(feeding.held)
                self._follow(self._session.not_held(sid, failed))
                return
            feeding.held = wanted


def shown(scope: Scope, token: str) -> Scope:
    """Return the handshake as if it had only this token as a credential."""
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if name.lower() not in {b"authorization", b"cookie"}
    ]
    shown = f"Bearer {token}".encode("latin-1", "replace")
    return {**scope, "headers": [(b"authorization", shown), *kept]}
