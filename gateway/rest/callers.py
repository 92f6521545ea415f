"""Authenticates callers on the event loop, and notifies streams whose caller is no longer valid.

What is not cached is looked up in a few threads, with one lookup for all calls with the same
credential. Passwords have their own threads: hashing one must not delay tokens.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.db import close_old_connections

from gateway.access.callers import Caller
from gateway.addresses import Network, network_of
from gateway.rest import cookies
from gateway.rest.calls import Scope
from gateway.rest.codes import ApiError, Code, internal
from gateway.rest.credentials import Asked, Password, asked_of, shown_in
from gateway.rest.identity import KNOWN_SECONDS, Identity, SessionProof
from gateway.rest.limits import Limits
from gateway.rest.strangers import Strangers
from gateway.shared import hints
from gateway.shared.layer import SharedChannelLayer

log: Final = logging.getLogger(__name__)
# Each thread holds a connection to the database; a lookup takes a millisecond.
TOKEN_THREADS: Final = 3
# The number of passwords that are hashed at once.
PASSWORD_THREADS: Final = 2
# Different credentials that wait for a thread; the last one waits a fraction of a second.
MAX_WAITING: Final = 256
# After a hint, streams look in groups, so that their lookups leave room for those of calls.
WOKEN_AT_ONCE: Final = 50
WAKE_SECONDS: Final = 0.02
# Passwords take a tenth of a second each; the last one waits a second or two.
MAX_WAITING_PASSWORDS: Final = 20


class Callers:
    """The callers of one event loop."""

    def __init__(
        self, identity: Identity, limits: Limits, *, trusted: Sequence[Network] = ()
    ) -> None:
        self.limits = limits
        self._identity = identity
        self._trusted = trusted
        self._tokens = Lane(TOKEN_THREADS, MAX_WAITING, "callers")
        self._passwords = Lane(PASSWORD_THREADS, MAX_WAITING_PASSWORDS, "passwords")
        self._strangers = Strangers()
        self._asking: dict[object, asyncio.Future[Caller]] = {}
        # The watches that wait for their next look.
        self._sleepers: set[asyncio.Future[None]] = set()
        self._following: asyncio.Task[None] | None = None

    async def of(self, scope: Scope) -> Caller:
        """Return the caller of a call or socket. Raises ApiError if it is refused or must wait."""
        return await self._of(asked_of(scope, self._trusted))

    async def of_page(self, scope: Scope) -> Caller | None:
        """Return the user whose session the browser of a page has; None if that is unknown.

        For limits only: whether the console's own page calls is for Django to check.
        """
        asked = asked_of(scope, self._trusted)
        key = cookies.session_of(asked)
        if not key:
            return None
        proof = SessionProof(key=key)
        new_from = None if self._identity.was_known(proof) else asked.address
        try:
            return await self._once(
                proof, self._tokens, lambda: self._identity.again(proof), new_from=new_from
            )
        except ApiError:
            return None

    def network_of(self, scope: Scope) -> str:
        """Return the address of a client, or the network of one subscriber."""
        return network_of(asked_of(scope, self._trusted).address)

    async def watch(
        self, caller: Caller, holds: Callable[[Caller], bool] = lambda _caller: True
    ) -> ApiError:
        """Return when a stream of a caller has to end, with the error to send.

        `holds` is called with the caller as known then: are its rights still sufficient? A check
        takes KNOWN_SECONDS and as long again at most, so a stream ends within five; after a hint
        that reaches this worker, within one.
        """
        while True:
            await self._sleep()
            try:
                found = await self._once(
                    caller.proof, self._tokens, lambda: self._identity.again(caller.proof)
                )
            except ApiError as error:
                if error.code is Code.NOT_AUTHENTICATED:
                    return error
                # The database is down or busy: admitted callers continue until it answers.
                continue
            except Exception:
                # It is unknown whether the caller may continue.
                log.exception("callers.watch_failed caller=%s", caller.key)
                return internal()
            if not holds(found):
                return ApiError(
                    Code.NOT_ALLOWED,
                    f"the rights of {caller.key} have changed, and no longer allow this stream",
                )

    def begin(self, layer: SharedChannelLayer) -> None:
        """Follow hints from now on."""
        self._following = asyncio.create_task(self._follow(layer))

    def drain(self) -> None:
        """Do nothing: answers in progress still need their callers."""

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._tokens.close()
        await self._passwords.close()

    async def _follow(self, layer: SharedChannelLayer) -> None:
        """Let all watches look at once, after each hint that rights may have changed."""
        async for _ in hints.hints_of(layer, hints.ACCESS):
            self._identity.doubt()
            sleepers = list(self._sleepers)
            for start in range(0, len(sleepers), WOKEN_AT_ONCE):
                for sleeper in sleepers[start : start + WOKEN_AT_ONCE]:
                    wake(sleeper)
                await asyncio.sleep(WAKE_SECONDS)

    async def _sleep(self) -> None:
        """Wait until it is time to look at a caller again."""
        loop = asyncio.get_running_loop()
        sleeper = loop.create_future()
        self._sleepers.add(sleeper)
        timer = loop.call_later(KNOWN_SECONDS, wake, sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()
            self._sleepers.discard(sleeper)

    async def _of(self, asked: Asked) -> Caller:
        key = self._identity.key_of(asked)
        caller = self._identity.remembered(key)
        if caller is None:
            shown = shown_in(asked.headers.get("authorization", ""))
            lane = self._passwords if isinstance(shown, Password) else self._tokens
            new_from = None if self._identity.was_known(key) else asked.address
            caller = await self._once(
                key, lane, lambda: self._identity.identify(asked), new_from=new_from
            )
        self.limits.take_request(caller)
        return caller

    async def _once(
        self,
        key: object,
        lane: "Lane",
        question: Callable[[], Caller],
        *,
        new_from: str | None = None,
    ) -> Caller:
        """Look a caller up, or join a running lookup of the same key.

        `new_from` is the address of a caller that was not known before.
        """
        asking = self._asking.get(key)
        if asking is None:
            if new_from is not None:
                self._strangers.check(key)
                self._strangers.enter(new_from)
            try:
                asking = lane.ask(question, is_new=new_from is not None)
            except ApiError:
                # The credential was not looked up, so it does not count as a guess.
                if new_from is not None:
                    self._strangers.found(new_from)
                raise
            self._asking[key] = asking
            asking.add_done_callback(lambda done: self._answered(key, done, new_from))
        # A caller that leaves must not cancel the lookup for the others.
        return await asyncio.shield(asking)

    def _answered(self, key: object, done: "asyncio.Future[Caller]", new_from: str | None) -> None:
        self._asking.pop(key, None)
        if done.cancelled():
            return
        # All callers may have left, so retrieve the exception here.
        error = done.exception()
        if isinstance(error, ApiError) and error.code is Code.NOT_AUTHENTICATED:
            self._strangers.refuse(key, error)
        elif new_from is not None:
            self._strangers.found(new_from)


class Lane:
    """A few threads with a bounded queue; half of the queue is reserved for known callers."""

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._most = threads + waiting
        self._most_new = threads + waiting // 2
        self._present = 0

    def ask(
        self, question: Callable[[], Caller], *, is_new: bool = False
    ) -> "asyncio.Future[Caller]":
        if self._present >= (self._most_new if is_new else self._most):
            raise ApiError(
                Code.UNAVAILABLE,
                f"{self._present} callers wait already to be authenticated: try again in a second",
                retry_after_s=1,
            )
        self._present += 1
        asking = asyncio.get_running_loop().run_in_executor(self._pool, _in_thread, question)
        asking.add_done_callback(self._leave)
        return asking

    async def close(self) -> None:
        """Start no more lookups, and wait for the running ones."""
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)

    def _leave(self, _done: "asyncio.Future[Caller]") -> None:
        self._present -= 1


def wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _in_thread(question: Callable[[], Caller]) -> Caller:
    try:
        return question()
    finally:
        # No request ends in this thread, which would do it otherwise.
        close_old_connections()
