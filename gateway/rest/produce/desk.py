"""Shared steps of all ways to produce: check rights, and send records to topics."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from gateway.access.callers import Caller
from gateway.kafka.delivery import Deliveries
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.known_topics import NO_TOPIC
from gateway.kafka.producer import size_of
from gateway.kafka.values import Delivered, NewRecord
from gateway.rest.calls import JSON, Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.incoming import MAX_HELD_BYTES_EACH, Budget
from gateway.rest.limits import MAX_DELAY_S

Done = Callable[[Delivered | Exception], None]
# The outcome of a record: a future, or an immediate refusal.
Outcome = asyncio.Future[Delivered | Exception] | ApiError
# The largest whole body.
MAX_BODY_BYTES: Final = MAX_HELD_BYTES_EACH
# The Retry-After of a closing worker: another one serves new callers.
COMES_BACK_S: Final = 1


class Limits(Protocol):
    """The write limits of callers."""

    def take_records(
        self, caller: Caller, records: int, size: int, *, patience_s: float = ...
    ) -> float: ...


class Creation(Protocol):
    """Creates missing topics, where that is allowed. Both raise ApiError where it is not."""

    async def require(self, caller: Caller, topic: str) -> None: ...

    async def create(self, caller: Caller, topic: str) -> None: ...


class Watching(Protocol):
    """Returns when a stream of a caller has to end, with the error to send."""

    def __call__(self, caller: Caller, holds: Callable[[Caller], bool]) -> Awaitable[ApiError]: ...


class Desk:
    """The produce steps of one event loop."""

    def __init__(
        self,
        deliveries: Deliveries,
        *,
        is_draining: Callable[[], bool] = lambda: False,
        limits: Limits | None = None,
        watch: Watching | None = None,
        budget: Budget | None = None,
        creation: Creation | None = None,
    ) -> None:
        self.deliveries = deliveries
        self.watch = watch
        self.budget = budget or Budget()
        self._is_draining = is_draining
        self._limits = limits
        self._creation = creation

    async def topic_of(self, call: Call, partition: int | None = None) -> str:
        """Return the topic of a call; raise ApiError for a missing topic or partition.

        A topic that may be created is, with its first record.
        """
        topic = call.parameters["topic"]
        if self._is_draining():
            raise stopping()
        try:
            await self.require(topic, partition)
        except KafkaFailure as failed:
            if self._creation is None or failed.name != NO_TOPIC:
                raise
            await self._creation.require(call.caller, topic)
        return topic

    async def require(self, topic: str, partition: int | None = None) -> None:
        """Look a topic up; errors distinguish a missing topic from a missing partition."""
        count = await self.deliveries.topics.require(topic)
        if partition is None or partition < count:
            return
        try:
            await self.deliveries.topics.require(topic, partition)
        except KafkaFailure as failed:
            if self.deliveries.topics.is_known(topic):
                raise ApiError(Code.NO_PARTITION, f"Partition not found. {failed}") from None
            raise

    def is_ready(self, topic: str, partition: int | None) -> bool:
        """Tell whether a record may be sent without waiting."""
        return not self.deliveries.is_full and self.deliveries.topics.is_known(topic, partition)

    async def ready(self, caller: Caller, topic: str, partition: int | None) -> None:
        """Wait until a record may be sent. Raises if it never may."""
        try:
            await self.require(topic, partition)
        except KafkaFailure as failed:
            if self._creation is None or failed.name != NO_TOPIC:
                raise
            await self._creation.create(caller, topic)
            await self.require(topic, partition)
        await self.deliveries.room()

    @asynccontextmanager
    async def body(self, call: Call) -> AsyncIterator[bytes]:
        """Read a whole body, which counts as buffered until the block ends."""
        await self.deliveries.room()
        async with self.budget.whole(call, MAX_BODY_BYTES) as found:
            yield found

    async def admit(self, call: Call, records: Sequence[NewRecord] = ()) -> None:
        """Count records of a call, and wait until they may be written at its caller's rate.

        Raises TOO_MANY if that is later than MAX_DELAY_S; then none may be written.
        """
        if self._limits is not None:
            size = sum(map(size_of, records))
            wait_s = self._limits.take_records(
                call.caller, len(records), size, patience_s=MAX_DELAY_S
            )
            if wait_s:
                await asyncio.sleep(wait_s)

    def delay_of(self, call: Call, record: NewRecord) -> float:
        """Count a record of a stream; return the seconds to wait before sending it."""
        if self._limits is None:
            return 0.0
        return self._limits.take_records(call.caller, 1, size_of(record))

    async def sent(
        self, call: Call, topic: str, record: NewRecord
    ) -> "asyncio.Future[Delivered | Exception]":
        """Send an admitted record as soon as there is room; return a future of its outcome."""
        if not self.is_ready(topic, record.partition):
            await self.ready(call.caller, topic, record.partition)
        outcome: asyncio.Future[Delivered | Exception]
        outcome = asyncio.get_running_loop().create_future()

        def done(told: Delivered | Exception) -> None:
            # The caller may have disconnected.
            if not outcome.done():
                outcome.set_result(told)

        self.send(call, topic, record, done)
        return outcome

    def send(self, call: Call, topic: str, record: NewRecord, done: Done) -> None:
        """Send a record that is counted."""
        call.records += 1
        self.deliveries.send(topic, record, done)


def stopping() -> ApiError:
    return ApiError(
        Code.UNAVAILABLE,
        "this worker of the gateway stops: send again",
        retry_after_s=COMES_BACK_S,
    )


def require_json(call: Call) -> None:
    """Refuse a body with another media type; one without a media type is taken for JSON."""
    given = call.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if given != JSON:
        raise ApiError(
            Code.UNSUPPORTED_TYPE, f"the body is {given[:80]!r}: send Content-Type: {JSON}"
        )
