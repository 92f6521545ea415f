"""Executes the decisions of a socket's session, and reports the results to it.

One task receives, one sends, and each subscription has a reader with tasks of its own. A client
that reads nothing is waited for: its readers pause, and then its frames are no longer received
either.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

from gateway.access.callers import Caller
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.producer import size_of
from gateway.kafka.values import Delivered
from gateway.rest.calls import LET_IN, Receive, Scope, Send
from gateway.rest.codes import ApiError
from gateway.ws import actions as decided
from gateway.ws.actions import Action, Close
from gateway.ws.group_reader import GroupReader
from gateway.ws.outbox import Outbox
from gateway.ws.partition_reader import PartitionReader
from gateway.ws.reader_context import Context
from gateway.ws.services import Services
from gateway.ws.session import Session

log: Final = logging.getLogger(__name__)
# How long a socket may be open without authentication.
AUTH_S: Final = 10.0
# A client that reads nothing for this long is treated as gone.
STUCK_S: Final = 60.0
# The final message must be sent within this; a terminating process waits for it.
LAST_WORD_S: Final = 1.0
# Stop receiving frames of a client with this much unsent, in characters, which are bytes: receipts
# and answers are sent beside records, which stop at `reader_context.MAX_UNSENT`.
MAX_UNSENT_ANSWERS: Final = 512 * 1024
# Frames that are processed in a row before other tasks run.
IN_A_ROW: Final = 50


class Connection:
    """Belongs to one event loop."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, services: Services) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._services = services
        self._session = Session(services.cluster_id)
        self._outbox = Outbox()
        self._readers: dict[str, PartitionReader | GroupReader] = {}
        self._stack = ExitStack()
        self._has_delivered = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_unknown(self) -> bool:
        return self._session.caller is None

    async def run(self, caller: Caller | None) -> None:
        """Serve an accepted socket until it ends."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._listen()), loop.create_task(self._speak())]
        late = loop.call_later(AUTH_S, lambda: self._execute(self._session.auth_timed_out()))
        try:
            if caller is not None:
                self._admit(caller)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            late.cancel()
            tasks += [self._watching] if self._watching is not None else []
            for reader in self._readers.values():
                tasks += reader.tasks
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Readers refer to this connection: without them, its memory is free at once.
            self._readers.clear()
            self._stack.close()
        for task in done:
            task.result()

    def drain(self) -> None:
        self._execute(self._session.drain())

    # --- actions -----------------------------------------------------------------------------

    def _execute(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self._execute_one(action)

    def _execute_one(self, action: Action) -> None:
        match action:
            case decided.Say(text):
                self._outbox.put(text)
            case Close():
                self._outbox.put(action)
            case decided.Open(sid=sid):
                self._readers[sid] = PartitionReader(self._context(), action)
            case decided.Join(sid=sid):
                self._readers[sid] = GroupReader(self._context(), action)
            case decided.Commit(sid=sid, offsets=offsets):
                member = self._readers[sid]
                assert isinstance(member, GroupReader), "only a group keeps offsets"
                member.commit(offsets)
            case decided.Move(sid=sid, starts=starts):
                self._readers[sid].move(starts)
            case decided.Drop(sid=sid, places=places):
                reader = self._readers[sid]
                assert isinstance(reader, PartitionReader), "a group assigns what it reads"
                reader.drop(places)
            case decided.Hold(sid=sid, places=places, is_paused=is_paused):
                self._readers[sid].hold(places, is_paused=is_paused)
            case decided.Feed(sid=sid):
                self._readers[sid].take_more()
            case decided.LetGo(sid=sid):
                for task in self._readers.pop(sid).tasks:
                    task.cancel()

    def _context(self) -> Context:
        return Context(self._services, self._session, self._outbox, self._execute)

    # --- the client --------------------------------------------------------------------------

    async def _listen(self) -> None:
        session, received = self._session, 0
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            actions = session.bytes_received() if text is None else session.text_received(text)
            for action in actions:
                match action:
                    case decided.Identify(token):
                        await self._identify(token)
                    case decided.Send():
                        await self._produce(action, len(text or ""))
                    case _:
                        self._execute_one(action)
            await self._outbox.room(MAX_UNSENT_ANSWERS)
            received += 1
            if received % IN_A_ROW == 0:
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
                    self._services.traffic.add(self._session.caller.key, bytes_out=len(item))
        except TimeoutError:
            log.info("ws.stuck client=%s", self._scope.get("client"))
        except OSError:
            # Raised by uvicorn when the client has disconnected.
            pass

    # --- the caller --------------------------------------------------------------------------

    async def _identify(self, token: str) -> None:
        scope = with_token(self._scope, token)
        try:
            caller = await self._services.callers.of(scope)
        except ApiError as error:
            self._execute(self._session.fail(error))
            return
        self._scope = scope
        self._admit(caller)

    def _admit(self, caller: Caller) -> None:
        if self._session.caller is None:
            try:
                self._stack.enter_context(self._services.seats.taken(caller))
            except ApiError as error:
                self._execute(self._session.fail(error))
                return
            self._stack.enter_context(self._services.traffic.opened(caller.key))
            self._services.traffic.add(caller.key, requests=1)
            # Absent without the gateway's own server.
            if let_in := self._scope.get(LET_IN):
                let_in()
        self._execute(self._session.identified(caller))
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._watch(caller))

    async def _watch(self, caller: Caller) -> None:
        """End the socket of a caller that is no longer valid, and what it may no longer read."""

        def holds(found: Caller) -> bool:
            self._execute(self._session.identified(found))
            return True

        self._execute(self._session.fail(await self._services.watch(caller, holds)))

    # --- records of the client ---------------------------------------------------------------

    async def _produce(self, action: decided.Send, size: int) -> None:
        services, record, caller = self._services, action.record, self._session.caller
        assert caller is not None, "a caller without a name writes"
        deliver = partial(self._delivered, action.id, action.topic)
        try:
            while self._session.is_full:
                self._has_delivered.clear()
                await self._has_delivered.wait()
            await self._throttle(action, caller)
            if not services.desk.is_ready(action.topic, record.partition):
                await services.desk.ready(caller, action.topic, record.partition)
            services.desk.deliveries.send(action.topic, record, deliver)
        except (ApiError, KafkaFailure) as failed:
            deliver(failed)
        services.traffic.add(caller.key, records=1, bytes_in=size)

    async def _throttle(self, action: decided.Send, caller: Caller) -> None:
        """Wait until the caller may write the record, after announcing that."""
        size = size_of(action.record)
        if wait_s := self._services.limits.take_records(caller, 1, size):
            self._execute(self._session.throttled(action.id, wait_s))
            await asyncio.sleep(wait_s)

    def _delivered(self, name: str, topic: str, result: Delivered | Exception) -> None:
        self._execute(self._session.delivered(name, topic, result))
        self._has_delivered.set()


def with_token(scope: Scope, token: str) -> Scope:
    """Return the handshake as if it had only this token as a credential."""
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if name.lower() not in {b"authorization", b"cookie"}
    ]
    authorization = f"Bearer {token}".encode("latin-1", "replace")
    return {**scope, "headers": [(b"authorization", authorization), *kept]}
