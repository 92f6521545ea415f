"""Manages the consumers of one worker: creates, finds, keeps alive and closes idle ones.

Each is a real client, driven in a thread that its calls share; calls of one consumer are served one
at a time. Belongs to one event loop.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar
from urllib.parse import quote

from gateway.access.callers import Caller
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.group_client import Closed
from gateway.kafka.member import Member
from gateway.kafka.readers.admission import Readable
from gateway.kafka.roster import Roster
from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import names
from gateway.rest.consume.bodies import Draft
from gateway.rest.seats import Ledger, Seats

T = TypeVar("T")
log: Final = logging.getLogger(__name__)

# A client has some threads and up to a few megabytes of records; this many take some 100 MB.
MAX_INSTANCES: Final = 64
# Of one caller with all workers, so that one program does not take all of them.
MAX_PER_CALLER: Final = 32
# Calls of one consumer that wait for the one before; a program has one or two at a time.
MAX_WAITING: Final = 8
# An unused consumer's program has gone. The timeout of the published interface.
IDLE_S: Final = 300.0
# How often each consumer polls its group, and claims are renewed for other workers.
LOOK_S: Final = 1.0
# A claim outlives some failed polls; a name is free this long after its worker died.
CLAIM_S: Final = 5.0
# The time to close all of them, within CLOSE_SECONDS of the worker.
CLOSE_S: Final = 1.8
CLAIMS: Final = "consumer"


class Claims(Protocol):
    """The shared claims of names by workers; None if the shared server does not answer."""

    async def claim(self, kind: str, name: str, *, owner: str, ttl_s: float) -> bool | None: ...

    async def renew(
        self, kind: str, names: Sequence[str], *, owner: str, ttl_s: float
    ) -> Sequence[str] | None: ...

    async def owner_of(self, kind: str, name: str) -> str | None: ...

    async def release(self, kind: str, name: str, *, owner: str) -> None: ...


@dataclass(slots=True)
class Matching:
    """A pattern, and when its topics were last looked up."""

    pattern: TopicPattern
    looked_at: float


class Instance:
    """One consumer."""

    def __init__(
        self, group: str, name: str, draft: Draft, member: Member, *, caller: Caller
    ) -> None:
        self.group = group
        self.name = name
        self.draft = draft
        self.member = member
        self.caller_key = caller.key
        self._principal = caller.principal
        # Set while the subscription is a pattern, whose topics the member has at present.
        self.matching: Matching | None = None
        self.used_at = time.monotonic()
        self.is_closed = False
        # Whether it counts for its caller.
        self.has_seat = False
        self._turn = asyncio.Lock()
        self._waiting = 0
        # The library's client is not thread-safe.
        self._one = threading.Lock()

    @property
    def claim(self) -> str:
        """The key of this consumer in claims."""
        return claim_of(self.group, self.name)

    @property
    def is_subscribed(self) -> bool:
        return bool(self.member.subscription) or self.matching is not None

    def require(self, caller: Caller) -> None:
        """Refuse callers who did not create this consumer, even if they may use its group."""
        if caller.principal != self._principal:
            raise ApiError(
                Code.NOT_ALLOWED,
                f"consumer {self.name!r} was created by another caller: create one of your own in"
                f" group {self.group}",
            )

    @property
    def is_idle(self) -> bool:
        return not self._turn.locked() and time.monotonic() - self.used_at >= IDLE_S

    @asynccontextmanager
    async def turn(self, *, is_last: bool = False) -> AsyncIterator[None]:
        """Serve one call at a time: a call after a fetch knows whether its records were taken.

        The last call of a consumer is never refused for the number of waiting calls.
        """
        if self._waiting >= MAX_WAITING and not is_last:
            raise ApiError(
                Code.TOO_MANY,
                f"{self._waiting} calls of this consumer wait already: wait for their answers",
                retry_after_s=1,
            )
        self._waiting += 1
        try:
            async with self._turn:
                if self.is_closed:
                    raise not_found(self.name)
                self.used_at = time.monotonic()
                try:
                    yield
                finally:
                    self.used_at = time.monotonic()
        finally:
            self._waiting -= 1

    def alone(self, work: Callable[[], T]) -> T:
        """Run work with exclusive use of the client; in a thread."""
        with self._one:
            return work()

    def look(self) -> None:
        """Poll the group, unless the client is busy, which polls it as well."""
        if self._one.acquire(blocking=False):
            try:
                self.member.look()
            finally:
                self._one.release()


class Instances:
    """All consumers of a worker; see the module."""

    def __init__(
        self,
        worker: str,
        *,
        connection: Callable[[], Connection],
        names_of: Callable[[TopicPattern, Readable], Awaitable[Sequence[str]]],
        create_topics: Callable[[Caller, Sequence[str]], Awaitable[None]],
        claims: Callable[[], Claims],
        roster: Roster | None = None,
        has_elsewhere: Callable[[Caller, str, str, str | None], Awaitable[bool]],
        seats: Seats | None = None,
    ) -> None:
        self._worker = worker
        self._connection = connection
        # The topics that a pattern means at present.
        self.names_of = names_of
        # Creates those that are missing, where that is allowed.
        self.create_topics = create_topics
        self._claims = claims
        self._roster = roster
        # (caller, group, name, worker): whether that worker, or any other one if None, has it.
        self._has_elsewhere = has_elsewhere
        self._seats = seats or seats_with(None)
        self._instances: dict[tuple[str, str], Instance] = {}
        # At most one thread for each, since their calls take turns.
        self._pool = ThreadPoolExecutor(self._seats.most, "consumers")
        self._keeping: asyncio.Task[None] | None = None
        # Idle consumers that are leaving their groups.
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_draining = False

    def find(self, group: str, name: str) -> Instance | None:
        return self._instances.get((group, name))

    async def create(self, group: str, draft: Draft, caller: Caller) -> Instance:
        """Create a consumer; it joins its group with its first subscription."""
        if self._is_draining:
            raise ApiError(
                Code.UNAVAILABLE, "this worker of the gateway stops: send again", retry_after_s=1
            )
        name = draft.name or names.made(group, self._worker)
        if (group, name) in self._instances:
            raise exists(name)
        member = Member(
            self._connection(),
            group,
            reset=draft.reset,
            commits_itself=draft.commits_itself,
            roster=self._roster,
        )
        instance = Instance(group, name, draft, member, caller=caller)
        # Take the name before asking other workers, so that two calls cannot both succeed.
        self._instances[group, name] = instance
        is_made = False
        try:
            await self._seats.reserve(caller)
            instance.has_seat = True
            if draft.name and not await self._claim(instance, caller):
                raise exists(name)
            if instance.is_closed:
                raise not_found(name)
            is_made = True
        finally:
            # Also if other workers could not be asked: free the name for another attempt.
            if not is_made:
                self._forget(instance)
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep())
        return instance

    async def run(self, instance: Instance, work: Callable[[], T]) -> T:
        """Run work with a consumer's client, in a thread."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, instance.alone, work)
        except Closed:
            raise not_found(instance.name) from None

    async def close_one(self, instance: Instance) -> None:
        """Leave the group, after committing delivered offsets if the consumer commits by itself."""
        if instance.is_closed:
            return
        instance.is_closed = True
        instance.member.stop()
        self._forget(instance)
        with suppress(KafkaFailure):
            await self.run(instance, instance.member.close)
        if instance.draft.name and not self._is_draining:
            # A stopping worker may have closed the shared connection; others notice its end.
            await self._claims().release(CLAIMS, instance.claim, owner=self._worker)

    def drain(self) -> None:
        """Let fetches return what they have, and create no more consumers."""
        self._is_draining = True
        for instance in self._instances.values():
            instance.member.stop()

    async def close(self) -> None:
        self._is_draining = True
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        closing = [self.close_one(instance) for instance in list(self._instances.values())]
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*closing, *self._leaving)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _forget(self, instance: Instance) -> None:
        """Give back the name and the seat of a consumer, once."""
        # A deletion may have removed it, and another call may have taken the name since.
        if self._instances.get((instance.group, instance.name)) is instance:
            del self._instances[instance.group, instance.name]
        if instance.has_seat:
            instance.has_seat = False
            self._seats.release(instance.caller_key)

    async def _claim(self, instance: Instance, caller: Caller) -> bool:
        """Claim a client's name for this worker among all; the claim of a dead worker is void."""
        claims, claim = self._claims(), instance.claim
        got = await claims.claim(CLAIMS, claim, owner=self._worker, ttl_s=CLAIM_S)
        if got is not False:
            # Claims may just have been lost, so ask the workers that would have made them.
            if not await self._has_elsewhere(caller, instance.group, instance.name, None):
                return True
            # The owner will claim it again; until then, calls would be passed to this worker.
            await claims.release(CLAIMS, claim, owner=self._worker)
            return False
        owner = await claims.owner_of(CLAIMS, claim)
        if owner is not None and await self._has_elsewhere(
            caller, instance.group, instance.name, owner
        ):
            return False
        if owner is not None:
            await claims.release(CLAIMS, claim, owner=owner)
        again = await claims.claim(CLAIMS, claim, owner=self._worker, ttl_s=CLAIM_S)
        return again is not False

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look_at_all()
            except Exception:
                # The next round may succeed; without any, all consumers would lose their groups.
                log.exception("consumers.look_failed")

    async def _look_at_all(self) -> None:
        """Keep consumers alive: claims first, since no consumer may delay them."""
        await self._renew()
        for instance in list(self._instances.values()):
            if instance.is_idle:
                log.info("consumer.closed_idle group=%s instance=%s", instance.group, instance.name)
                self._close_beside(instance)
        instances = list(self._instances.values())
        loop = asyncio.get_running_loop()
        looks = [
            loop.run_in_executor(self._pool, instance.look)
            for instance in instances
            if not instance.is_closed
        ]
        for failed in await asyncio.gather(*looks, return_exceptions=True):
            # The consumer's next call reports the failure; here it must not affect the others.
            if isinstance(failed, BaseException):
                log.warning("consumer.look_failed error=%s", failed)

    async def _renew(self) -> None:
        claimed = [each.claim for each in self._instances.values() if each.draft.name]
        if not claimed:
            return
        claims = self._claims()
        lost = await claims.renew(CLAIMS, claimed, owner=self._worker, ttl_s=CLAIM_S)
        for claim in lost or ():
            # Created twice while the shared server was down; each worker serves its own.
            log.warning("consumer.claim_lost claim=%s", claim)

    def _close_beside(self, instance: Instance) -> None:
        """Close a consumer in its own task: leaving a group takes as long as a broker's answer."""
        leaving = asyncio.create_task(self.close_one(instance))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)


def seats_with(
    ledger: Ledger | None, *, most: int = MAX_INSTANCES, each: int = MAX_PER_CALLER
) -> Seats:
    """Return the seats of a worker's consumers, as a ledger counts them for all workers."""
    return Seats("consumers", most=most, each=each, code=Code.TOO_MANY_CONSUMERS, ledger=ledger)


def claim_of(group: str, name: str) -> str:
    return f"{quote(group, safe='')}/{quote(name, safe='')}"


def not_found(name: str) -> ApiError:
    return ApiError(
        Code.NOT_THERE,
        f"Consumer instance not found. {name[: names.MAX_CHARS]!r} was deleted, was not used for "
        f"{IDLE_S:g} s, or its worker has ended: create it again, its group continues from what "
        "was committed",
    )


def exists(name: str) -> ApiError:
    return ApiError(
        Code.CONSUMER_EXISTS,
        f"Consumer with specified consumer ID already exists in the specified consumer group:"
        f" {name!r}; use it, delete it, or leave the name out",
    )
