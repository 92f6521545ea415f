"""Produces one record or a stream of them in version 3: each gets a receipt at once, in order.

One task reads and sends records, another one writes receipts as they arrive. A queue between them
has a slot for each record; its limit stops reading while the cluster is slow. Receipts that the
client does not read are kept within limits; at these, reading stops until it does.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
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
from gateway.rest.produce.unread import MAX_UNREAD_BYTES, Unread, unread_of_all
from gateway.rest.seats import Ledger, Seats

# Records of one connection that await receipts: enough to fill batches of all partitions.
MAX_WAITING: Final = 5_000
# Their bytes. A larger record is sent alone.
MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
# A stream may be open for a day, as clients of the published interface expect.
MAX_OPEN_S: Final = 24 * 3600.0
# A client that has only to read, and reads no receipt for this long, is stuck; so is one that sends
# while no more receipts are kept. They take memory.
UNREAD_S: Final = 30.0
# A client may send for so long before it reads the first receipt.
LATER_S: Final = 600.0
# How long a client whose receipts did not fit may go on to send what is discarded.
DISCARD_S: Final = 60.0
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


class Overflow(Exception):
    """A client reads no receipts, and no more are kept."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


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
        discard_s: float,
        unread: Unread,
    ) -> None:
        self._call = call
        self._desk = desk
        self._topic = topic
        self._open_s = open_s
        self._unread_s = unread_s
        self._discard_s = discard_s
        self._wording = Wording(call.cluster_id, topic)
        # Records without a receipt, and those that follow them.
        self._row: deque[Slot] = deque()
        self._bytes = 0
        self._count = 0
        self._written = 0
        self._kept = 0
        # Receipts that the connection has not taken.
        self._unread = unread
        # Why a client that does not read ends its stream.
        self._overflow: ApiError | None = None
        # Only a call with a declared length can be answered with its only record's status.
        self._may_be_single = "content-length" in call.headers
        self._is_stopping = False
        self._takes_no_more = False
        self._reading: asyncio.Task[None] | None = None
        self._sending: asyncio.Timeout | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._sent_some = asyncio.Event()

    async def run(self) -> None:
        self._reading = asyncio.create_task(self._read())
        self._reading.add_done_callback(lambda _: self._take_no_more())
        try:
            await self._write()
        finally:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._hold(0)
            self._unread.release()
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
        except Overflow as full:
            self._overflow = full.error
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
        else:
            return
        self._take_no_more()
        if not self._call.is_whole:
            await self._discard()

    async def _discard(self) -> None:
        """Discard the rest: a client that sends all before it reads would not read otherwise."""
        with suppress(ApiError):
            await self._call.left()
        raise Gone

    def _take_no_more(self) -> None:
        """Note that no record follows; from now on, the client has only to read."""
        self._takes_no_more = True
        if self._sending is not None and not self._sending.expired():
            now = asyncio.get_running_loop().time()
            self._sending.reschedule(now + self._patience_s)
        self._changed.set()

    def _hold(self, kept: int) -> None:
        """Update the count of buffered bytes of an incomplete record."""
        self._desk.budget.change(self._call.caller, kept - self._kept)
        self._kept = kept

    async def _take(self, text: bytes) -> None:
        """Send a record, or queue its refusal."""
        if self._row and self._may_be_single:
            # Otherwise a first record that fills the queue would wait for this one.
            self._be_stream()
        while len(self._row) >= MAX_WAITING or self._bytes >= MAX_WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        if self._unread.refusal() is not None:
            await self._be_read()
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

    async def _be_read(self) -> None:
        """Wait until receipts fit again. Raises Overflow if the client reads none for a while."""
        while (full := self._unread.refusal()) is not None:
            self._sent_some.clear()
            try:
                async with asyncio.timeout(self._unread_s):
                    await self._sent_some.wait()
            except TimeoutError:
                raise Overflow(full) from None

    def _slot(self, size: int) -> Slot:
        slot = Slot(size)
        self._row.append(slot)
        self._bytes += size
        self._count += 1
        if self._count > 1 and self._may_be_single:
            self._be_stream()
        return slot

    def _be_stream(self) -> None:
        """Answer each record by itself, instead of the call with the status of its only one."""
        self._may_be_single = False
        self._collect()

    def _refuse(self, error: ApiError) -> None:
        self._settle(self._slot(0), error)

    def _settled(self, slot: Slot, draft: Draft, told: Delivered | Exception) -> None:
        if isinstance(told, Delivered):
            self._written += 1
            slot.receipt = self._wording.receipt(told, draft)
            if self._row and self._row[0] is slot:
                self._collect()
        else:
            self._settle(slot, api_error(told))

    def _settle(self, slot: Slot, error: ApiError) -> None:
        self._call.errors += 1
        slot.error = error
        slot.receipt = dumped(in_stream(error))
        self._collect()

    def _collect(self) -> None:
        """Take the receipts at the head of the queue out of it, for the client to read."""
        row = self._row
        while not self._may_be_single and row and (receipt := row[0].receipt) is not None:
            self._bytes -= row.popleft().size
            self._unread.put(receipt)
        self._room.set()
        self._changed.set()

    # --- receipts ----------------------------------------------------------------------------

    async def _write(self) -> None:
        while not self._has_failed():
            self._changed.clear()
            if self._may_be_single:
                if self._takes_no_more:
                    await self._write_single()
                    return
            elif await self._write_some():
                continue
            elif self._takes_no_more and not self._row:
                await self._end()
                return
            await self._changed.wait()

    async def _write_some(self) -> bool:
        """Write ready receipts; tell whether there were any."""
        if not self._call.is_started:
            await self._call.start(OK, JSON)
        if not self._unread:
            return False
        try:
            async with asyncio.timeout(self._patience_s) as self._sending:
                await self._call.write(self._unread.take(MAX_WRITE_BYTES))
        except TimeoutError:
            raise Gone from None
        finally:
            self._sending = None
        self._sent_some.set()
        return True

    @property
    def _patience_s(self) -> float:
        """How long the client may read nothing."""
        if not self._takes_no_more:
            return LATER_S
        return self._unread_s if self._overflow is None else self._discard_s

    async def _end(self) -> None:
        """End the answer; a client that has not read learns how much of its body was taken."""
        if self._overflow is not None:
            self._call.errors += 1
            message = (
                f"{self._overflow.message}: of the first {self._count} records, {self._written} are"
                " written, and each has its line; nothing after them was taken: send the rest"
                " again, in calls of fewer records, or read while you send"
            )
            error = ApiError(self._overflow.code, message)
            line = {**error.value(), "records_written": self._written}
            await self._call.write(dumped(line) + END)
        await self._call.end()

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
        discard_s: float = DISCARD_S,
        most: int = MAX_OPEN,
        each: int = MAX_OPEN_EACH,
        ledger: Ledger | None = None,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        self._opened = opened
        self._most = most
        self._seats = Seats("streams to write", most=most, each=each, ledger=ledger)
        self._open_s = open_s
        self._unread_s = unread_s
        self._discard_s = discard_s
        self._max_unread_bytes = max_unread_bytes
        self._unread = unread_of_all()
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
        stream = Stream(
            call,
            desk,
            topic,
            open_s=self._open_s,
            unread_s=self._unread_s,
            discard_s=self._discard_s,
            unread=Unread(call.caller, self._unread, most=self._max_unread_bytes),
        )
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
