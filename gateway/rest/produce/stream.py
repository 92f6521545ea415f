"""Produces one record or a stream of them in version 3: each gets a receipt at once, in order.

One task reads and sends records, another one writes receipts as they arrive. A queue between them
has a slot for each record; its limit stops reading while receipts are slow or are not read.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final

from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered
from gateway.rest.calls import JSON, Call, Gone, dumped
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.desk import Desk, require_json, stopping
from gateway.rest.produce.drafts import Draft, drafted
from gateway.rest.produce.receipts import END, OK, Wording, api_error, in_stream
from gateway.rest.produce.splitter import Malformed, Splitter, TooLarge
from gateway.rest.seats import Ledger, Seats

# Records of one connection that await receipts: enough to fill batches of all partitions.
MAX_WAITING: Final = 5_000
# Their bytes. A larger record is sent alone.
MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
# A stream may be open for a day, as clients of the published interface expect.
MAX_OPEN_S: Final = 24 * 3600.0
# A client that reads no receipt for this long is stuck; its pending receipts take memory.
UNREAD_S: Final = 30.0
# Open streams of one worker: a socket, two tasks and some kilobytes each.
MAX_OPEN: Final = 2_000
# Keeps one caller from blocking others.
MAX_OPEN_EACH: Final = 500
# Receipts written at once; the next ones wait until the connection has taken these.
MAX_WRITE_BYTES: Final = 64 * 1024
# The Retry-After while too many streams are open.
BUSY_S: Final = 5
# Records read in a row before other tasks run.
IN_A_ROW: Final = 200


class Slot:
    """The slot of one record in the queue, and its receipt once there is one."""

    __slots__ = ("error", "receipt", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.receipt: bytes | None = None
        self.error: ApiError | None = None


class Stream:
    """One call. `is_open` calls may last for hours; others have declared their length."""

    def __init__(
        self,
        call: Call,
        desk: Desk,
        topic: str,
        *,
        open_s: float,
        unread_s: float,
    ) -> None:
        self._call = call
        self._desk = desk
        self._topic = topic
        self._open_s = open_s
        self._unread_s = unread_s
        self._wording = Wording(call.cluster_id, topic)
        self._row: deque[Slot] = deque()
        self._bytes = 0
        self._count = 0
        self._kept = 0
        # Only a call with a declared length can be answered with its only record's status.
        self._may_be_single = "content-length" in call.headers
        self._is_stopping = False
        self._reading: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()

    async def run(self) -> None:
        self._reading = asyncio.create_task(self._read())
        self._reading.add_done_callback(lambda _: self._changed.set())
        try:
            await self._write()
        finally:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._hold(0)
        if self._has_failed():
            raise self._reading.exception() or Gone

    def stop(self) -> None:
        """Stop reading, and end when all receipts are written."""
        self._is_stopping = True
        if self._reading is not None:
            self._reading.cancel()

    def end(self, error: ApiError) -> None:
        """Stop reading, and send the reason after the last receipt."""
        if not self._is_stopping:
            self._refuse(error)
            self.stop()

    def _has_failed(self) -> bool:
        """Tell whether the client has left or an internal error occurred: no one reads receipts."""
        reading = self._reading
        return (
            reading is not None
            and reading.done()
            and not reading.cancelled()
            and reading.exception() is not None
        )

    # --- records -----------------------------------------------------------------------------

    async def _read(self) -> None:
        splitter = Splitter()
        try:
            async with asyncio.timeout(self._open_s):
                async for piece in self._call.pieces():
                    for number, text in enumerate(splitter.feed(piece), start=1):
                        await self._take(text)
                        if number % IN_A_ROW == 0:
                            await asyncio.sleep(0)
                    self._hold(splitter.kept)
            splitter.finish()
        except ApiError as error:
            self._refuse(error)
        except TooLarge as error:
            self._refuse(ApiError(Code.TOO_LARGE, str(error)))
        except Malformed as error:
            self._refuse(ApiError(Code.BAD_REQUEST, str(error)))
        except TimeoutError:
            self._refuse(
                ApiError(
                    Code.TIMED_OUT,
                    f"a stream is open for {self._open_s:.0f} s at most: open another one",
                )
            )

    def _hold(self, kept: int) -> None:
        """Update the count of buffered bytes of an incomplete record."""
        self._desk.budget.change(self._call.caller, kept - self._kept)
        self._kept = kept

    async def _take(self, text: bytes) -> None:
        """Send a record, or queue its refusal."""
        if self._row and self._may_be_single:
            # Otherwise a first record that fills the queue would wait for this one.
            self._may_be_single = False
            self._changed.set()
        while len(self._row) >= MAX_WAITING or self._bytes >= MAX_WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        try:
            draft = drafted(text)
            partition = draft.record.partition
            if delay_s := self._desk.delay_of(self._call, draft.record):
                await asyncio.sleep(delay_s)
            if not self._desk.is_ready(self._topic, partition):
                await self._desk.ready(self._call.caller, self._topic, partition)
            slot = self._slot(len(text))
            settled = partial(self._settled, slot, draft)
            self._desk.send(self._call, self._topic, draft.record, settled)
        except (ApiError, KafkaFailure) as failed:
            self._refuse(api_error(failed))

    def _slot(self, size: int) -> Slot:
        slot = Slot(size)
        self._row.append(slot)
        self._bytes += size
        self._count += 1
        if self._count > 1:
            self._may_be_single = False
        return slot

    def _refuse(self, error: ApiError) -> None:
        self._settle(self._slot(0), error)

    def _settled(self, slot: Slot, draft: Draft, told: Delivered | Exception) -> None:
        if isinstance(told, Delivered):
            slot.receipt = self._wording.receipt(told, draft)
            if self._row and self._row[0] is slot:
                self._changed.set()
        else:
            self._settle(slot, api_error(told))

    def _settle(self, slot: Slot, error: ApiError) -> None:
        self._call.errors += 1
        slot.error = error
        slot.receipt = dumped(in_stream(error))
        self._changed.set()

    # --- receipts ----------------------------------------------------------------------------

    async def _write(self) -> None:
        while not self._has_failed():
            self._changed.clear()
            is_read = self._reading is None or self._reading.done()
            if self._may_be_single:
                if is_read:
                    await self._write_single()
                    return
            elif await self._write_some():
                continue
            elif is_read and not self._row:
                await self._call.end()
                return
            await self._changed.wait()

    async def _write_some(self) -> int:
        """Write ready receipts; return their number."""
        if not self._call.is_started:
            await self._call.start(OK, JSON)
        ready = []
        size = 0
        while self._row and self._row[0].receipt is not None and size < MAX_WRITE_BYTES:
            slot = self._row.popleft()
            self._bytes -= slot.size
            assert slot.receipt is not None
            ready += [slot.receipt, END]
            size += len(slot.receipt)
        if ready:
            try:
                async with asyncio.timeout(self._unread_s):
                    await self._call.write(b"".join(ready))
            except TimeoutError:
                raise Gone from None
            self._room.set()
        return len(ready) // 2

    async def _write_single(self) -> None:
        """Answer with the status of the call's only record."""
        if not self._row and self._is_stopping:
            raise stopping()
        if not self._row:
            raise ApiError(Code.BAD_REQUEST, "the body holds no record: send a JSON object")
        [slot] = self._row
        while slot.receipt is None:
            self._changed.clear()
            await self._changed.wait()
        if slot.error is not None:
            self._call.errors -= 1
            raise slot.error
        await self._call.answer(OK, slot.receipt + END)


class Streams:
    """All open streams of a worker."""

    def __init__(
        self,
        opened: Callable[[str], AbstractContextManager[None]] = lambda _key: nullcontext(),
        *,
        open_s: float = MAX_OPEN_S,
        unread_s: float = UNREAD_S,
        most: int = MAX_OPEN,
        each: int = MAX_OPEN_EACH,
        ledger: Ledger | None = None,
    ) -> None:
        self._opened = opened
        self._most = most
        self._seats = Seats("streams to write", most=most, each=each, ledger=ledger)
        self._open_s = open_s
        self._unread_s = unread_s
        self._open: set[Stream] = set()

    async def produce(self, call: Call, desk: Desk) -> None:
        """Serve `POST …/records`."""
        require_json(call)
        if len(self._open) >= self._most:
            raise ApiError(
                Code.UNAVAILABLE,
                f"{self._most} streams are open in this worker of the gateway: send again later",
                retry_after_s=BUSY_S,
            )
        with self._seats.taken(call.caller):
            await self._produce(call, desk)

    async def _produce(self, call: Call, desk: Desk) -> None:
        topic = await desk.topic_of(call)
        # A stream that has begun is delayed and never refused, whatever its caller owes.
        await desk.admit(call)
        stream = Stream(call, desk, topic, open_s=self._open_s, unread_s=self._unread_s)
        self._open.add(stream)
        watching = None if desk.watch is None else self._watched(stream, call, desk, topic)
        guard = None if watching is None else asyncio.ensure_future(watching)
        try:
            with self._opened(call.caller.key):
                await stream.run()
        finally:
            self._open.discard(stream)
            if guard is not None:
                guard.cancel()

    async def _watched(self, stream: Stream, call: Call, desk: Desk, topic: str) -> None:
        assert desk.watch is not None

        def holds(known: Caller) -> bool:
            decision = known.decide(Operation.PRODUCE, Kind.TOPIC, call.cluster_id, topic)
            return decision.is_allowed

        stream.end(await desk.watch(call.caller, holds))

    def drain(self) -> None:
        for stream in self._open:
            stream.stop()

    async def close(self) -> None:
        """Do nothing: each stream ends with its call."""
