"""Connects one client's socket to the protocol's state machine and the dispatch.

Owns the socket and nothing else of the broker. Each read takes the received bytes, all requests in
it are handled, and their responses leave in one send; later responses are collected until the end
of the loop's turn, or of the flush that they waited for. Reading stops while too much waits to be
sent or answered, and continues when much of it is gone; `Pause` lists all reasons to stop.

Every method checks the closed flag first: the number of a closed descriptor is soon reused, so
nothing here may pass a number to the event loop that might belong to another connection.
"""

import math
import socket
from collections.abc import Iterable, Sized
from enum import Flag, auto
from typing import TYPE_CHECKING, Final

from brokers.protocol.connection import Connection, RawToken
from brokers.protocol.errors import ProtocolError
from brokers.protocol.headers import Request
from brokers.protocol.schema import Message
from brokers.server.call import Call, Closing
from brokers.server.client_ledger import MAX_ID_LENGTH
from brokers.server.express.lanes import Answer
from brokers.server.file_range import FileRange, release_all
from brokers.server.output import FileShrank, Output
from brokers.server.peers import Peer
from brokers.server.readers import SLICE_SECONDS

if TYPE_CHECKING:
    from brokers.server.listener import Listener

# Reading stops above this and goes on below a quarter of it: little enough for ten thousand readers
# that never read, enough that a fast one never waits for us.
MAX_OUTPUT_BYTES: Final = 1024 * 1024
RESUME_OUTPUT_BYTES: Final = MAX_OUTPUT_BYTES // 4
# Unsent bytes of all connections together, beyond which each one with unsent bytes pauses too.
MAX_TOTAL_OUTPUT_BYTES: Final = 256 * 1024 * 1024

# If this much of a request is missing, it does not fit into the shared receive buffer, and neither
# will the next one.
BULK_BYTES: Final = 224 * 1024

# Why a connection ended: the words of the log and of the metric.
GONE: Final = "client gone"
BAD_BYTES: Final = "bad bytes"
IDLE: Final = "idle"
SLOW: Final = "slow frame"
DISCONNECTED: Final = "refused"
FAILED: Final = "handler failed"
STOPPED: Final = "broker stopped"


class Pause(Flag):
    """Reasons why the broker handles no further request of a connection for now."""

    CHOKED = auto()  # the client does not read its responses
    SPENT = auto()  # it used up its slice of this turn: others come first
    MUTED = auto()  # throttled until a time
    HELD = auto()  # one of its requests must end before the next one is handled


NO_PAUSE: Final = Pause(0)


class Client:
    """See the module."""

    __slots__ = (
        "_counted",
        "_held_ranges",
        "_in_turn",
        "_is_flushing",
        "_is_reading",
        "_is_stopping",
        "_is_writing",
        "_listener",
        "_may_shortcut",
        "_pauses",
        "_receive",
        "_send_bytes",
        "_sends_bulk",
        "_socket",
        "_watching",
        "bytes_in",
        "bytes_out",
        "client_id",
        "due_ms",
        "frame_mark",
        "frame_since",
        "is_closed",
        "last_active",
        "machine",
        "muted_until",
        "output",
        "peer",
        "requests",
    )

    def __init__(
        self, sock: socket.socket, peer: Peer, machine: Connection, listener: "Listener"
    ) -> None:
        self.peer = peer
        self.machine = machine
        self.output = Output(sock, listener.scratch)
        self.is_closed = False
        self.requests = 0
        # For the ledger of clients.
        self.client_id = ""
        self.bytes_in = 0
        self.bytes_out = 0
        self.last_active = 0.0  # monotonic seconds
        self.muted_until = 0.0  # monotonic seconds
        self.due_ms = 0.0  # for the deadlines, which end the mute
        # For the sweep, which finds frames that take too long.
        self.frame_mark = -1
        self.frame_since = 0.0
        self._socket = sock
        # Looked up once, for the hottest path.
        self._receive = sock.recv_into
        self._send_bytes = sock.send
        self._listener = listener
        self._counted = 0  # the part of the output that counts in the sum of all connections
        self._in_turn = False
        # Copied from the machine, since only bytes that it reads can change it. The first request
        # takes the regular path, which reads the client id.
        self._may_shortcut = False
        self._pauses = NO_PAUSE
        self._sends_bulk = False  # its last request was a large one
        self._is_flushing = False  # a flush at the end of the turn is requested
        self._is_reading = False
        self._is_writing = False
        self._is_stopping = False
        self._watching: set[Closing] | None = None
        # File ranges of responses that wait in the machine for their turn.
        self._held_ranges: set[FileRange] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether requests wait for responses, or responses wait to be sent."""
        return bool(self.machine.waiting or self.output.size)

    def start(self, now: float) -> None:
        self.last_active = now
        self._start_reading()

    # -- bytes in --------------------------------------------------------------------------------

    def _readable(self) -> None:
        if self.is_closed:
            return
        listener, machine = self._listener, self.machine
        may_shortcut = self._may_shortcut
        is_between = may_shortcut or not machine.is_inside_frame
        try:
            if is_between:
                room = listener.first_room if self._sends_bulk else listener.shared
            else:
                room = machine.room(listener.shared)
                if not room:
                    listener.frame_room.wait(self, listener.now())
                    return
            count = self._receive(room)
        except BlockingIOError:
            return
        except OSError:
            self.close(GONE)
            return
        if not count:
            self.close(GONE)
            return
        self.last_active = now = listener.now()
        listener.metrics.bytes_in += count
        self.bytes_in += count
        if may_shortcut:
            try:
                answer = listener.express(listener.received, room, count, now)
            except Exception as error:  # noqa: BLE001 - as for every handler's bug
                listener.bug(error)
                self.close(FAILED)
                return
            if answer is not None:
                self.requests += 1
                self._take(answer)
                return
        self._read(room, count, now, is_between=is_between)

    def _read(self, room: memoryview, count: int, now: float, *, is_between: bool) -> None:
        """Pass received bytes through the machine, the regular path."""
        machine = self.machine
        if not is_between:
            if len(room) > BULK_BYTES:
                self._sends_bulk = True
            self._serve(machine.received(count), now, now + SLICE_SECONDS)
            return
        self._sends_bulk = False
        try:
            request = machine.only_request(room, count)
        except ProtocolError as error:
            self._refuse(error)
            return
        if request is not None:
            # All of it is handled in this turn, regardless of the time it takes.
            self._serve((request,), now, None)
        else:
            machine.room(room)
            self._serve(machine.received(count), now, now + SLICE_SECONDS)

    def _take(self, answer: Answer) -> None:
        """Send the response of a lane, or reserve its place until it is ready."""
        machine = self.machine
        is_first = not machine.waiting and not self.output.size
        if is_first and type(answer) is bytes:
            try:
                count = self._send_bytes(answer)
            except BlockingIOError:
                count = 0
            except OSError as error:
                self._gone(error)
                return
            self._listener.metrics.bytes_out += count
            self.bytes_out += count
            if count != len(answer):
                self.output.add([memoryview(answer)[count:]])
                self._flush()
        elif is_first and type(answer) is list:
            if self._drain(answer) and self.output.size:
                self._wait_to_write()
        else:
            place = machine.reserve()
            if isinstance(answer, bytes):
                self.deliver_reserved(place, [answer])
            elif isinstance(answer, list):
                self.deliver_reserved(place, answer)
            else:
                answer.begin(self, place)
            if not machine.can_read:
                self._stop_reading()
                self._flush_soon()
        if self._is_writing and not self.is_closed:
            waiting = self.output.size
            if waiting > MAX_OUTPUT_BYTES or self._listener.is_crowded:
                self._pause(Pause.CHOKED)
                self._stop_reading()

    def _serve(
        self, requests: Iterable[Request | RawToken], now: float, until: float | None
    ) -> None:
        """Handle requests, and send at the end the responses that are ready.

        After the time `until`, handle no further request in this turn of the loop.
        """
        self._in_turn = True
        listener, output = self._listener, self.output
        dispatch, clock = listener.dispatch, listener.now
        try:
            for request in requests:
                assert isinstance(request, Request), "raw tokens come with authentication only"
                if not self.requests:
                    self.client_id = (request.client_id or "")[:MAX_ID_LENGTH]
                self.requests += 1
                dispatch.handle(self, request, now)
                if self.is_closed:
                    return
                if output.size > MAX_OUTPUT_BYTES or (self._is_writing and listener.is_crowded):
                    self._pause(Pause.CHOKED)
                if until is not None and clock() >= until:
                    self._pause(Pause.SPENT)
        except ProtocolError as error:
            self._refuse(error)
            return
        except Exception as error:  # noqa: BLE001 - else the loop would call again, for ever
            listener.bug(error)
            self.close(FAILED)
            return
        finally:
            self._in_turn = False
            self._may_shortcut = self.machine.may_shortcut
        self._flush()
        if not self._is_reading or not self.machine.can_read:
            self._rest()

    def _rest(self) -> None:
        """End a turn in which the connection was paused, or continued after a pause."""
        machine = self.machine
        if self.is_closed:
            return
        if not machine.has_held:
            self._resume_from(Pause.SPENT)  # no held bytes are left to handle
            if machine.can_read:
                self._start_reading()
                return
        self._stop_reading()
        if self._pauses & Pause.SPENT:
            self._listener.readers.go_on_later(self._take_slice)
        elif not self._is_writing:
            self._flush_soon()  # if all was sent at once, nothing else would check again

    def _take_slice(self) -> None:
        """Handle received bytes that had to wait, in the slice of another turn."""
        if self.is_closed or self._is_stopping:
            return
        self._resume_from(Pause.SPENT)
        self._weigh_output()
        # If it cannot read, another pause is active, whose end resumes the connection.
        if self.machine.can_read:
            # The bytes received so far may be all that the peer will ever send.
            now = self._listener.now()
            self._serve(self.machine.resume(), now, now + SLICE_SECONDS)

    def _gone(self, error: OSError) -> None:
        # The same call reports an unreadable disk and a peer that is gone.
        self.close(GONE, detail=None if isinstance(error, ConnectionError) else str(error))

    def _refuse(self, error: ProtocolError) -> None:
        """End a connection after a protocol error; earlier requests are answered."""
        self._flush()
        self.close(BAD_BYTES, detail=self._listener.describe(self, error))

    # -- answers out -----------------------------------------------------------------------------

    def answered(self, call: Call, message: Message) -> None:
        buffers = self._listener.dispatch.encode(call, message)
        if buffers is None:
            self.close(FAILED)
        else:
            self.deliver(call.request, buffers)

    def answered_encoded(self, call: Call, buffers: list[Sized]) -> None:
        self._listener.dispatch.observe(call)
        self.deliver(call.request, buffers)

    def deliver(self, request: Request, buffers: list[Sized]) -> None:
        """Send a response's body, or keep it until those before it are sent."""
        if self.is_closed:
            release_all(buffers)
            return
        ready = self.machine.answer(request, buffers)
        if not ready:
            self._hold(buffers)
        elif self._in_turn and not self._is_writing and not self._held_ranges:
            self.output.add(ready)
            return
        self._send(ready)

    def deliver_reserved(self, place: int, frame: list[Sized]) -> None:
        """Send a whole response in its reserved place, when its turn comes."""
        if self.is_closed:
            release_all(frame)
            return
        ready = self.machine.answer_reserved(place, frame)
        if not ready:
            self._hold(frame)
        self._send(ready)

    def skipped(self, call: Call) -> None:
        if not self.is_closed:
            self._send(self.machine.skip(call.request))

    def _send(self, ready: list[Sized]) -> None:
        """Queue buffers, to be sent at the end of the connection's turn, or of the loop's."""
        if ready:
            if self._held_ranges:
                self._held_ranges.difference_update(
                    item for item in ready if isinstance(item, FileRange)
                )
            self.output.add(ready)
            self._count_output()
        if not self._in_turn:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            self._listener.flush_soon(self)

    def flush_collected(self) -> None:
        """Send the responses that were collected in a turn of the loop."""
        self._is_flushing = False
        if self.is_closed:
            return
        # A client that waited long for a response was not idle.
        self.last_active = self._listener.now()
        self._flush()
        self._go_on()

    def _flush(self) -> None:
        output = self.output
        if self.is_closed or self._is_writing or not output.size or not self._drain():
            return
        if output.size:
            self._wait_to_write()

    def _wait_to_write(self) -> None:
        self._is_writing = True
        self._count_output()
        try:
            self._listener.loop.add_writer(self._socket, self._writable)
        except OSError as error:
            self.close(FAILED, detail=_no_room(error))

    def _writable(self) -> None:
        if self.is_closed:
            return
        if not self._drain():
            return
        self.last_active = self._listener.now()
        if not self.output.size:
            self._is_writing = False
            self._listener.loop.remove_writer(self._socket)
        self._count_output()
        self._go_on()

    def _count_output(self) -> None:
        """Update the sum of unsent bytes; bytes that are sent at once are not counted."""
        size = self.output.size if self._is_writing else 0
        self._listener.output_bytes += size - self._counted
        self._counted = size

    def _drain(self, first: list[Sized] | None = None) -> bool:
        """Send what can be sent now; False if that ended the connection.

        `first`, given only if no output waits, is sent before everything else.
        """
        output = self.output
        try:
            count = output.drain() if first is None else output.send_at_once(first)
            self._listener.metrics.bytes_out += count
            self.bytes_out += count
        except FileShrank as error:
            self.close(FAILED, detail=str(error))
            return False
        except OSError as error:
            self._gone(error)
            return False
        except Exception as error:  # noqa: BLE001 - else the loop would call again, for ever
            self._listener.bug(error)
            self.close(FAILED)
            return False
        return True

    # -- pauses ----------------------------------------------------------------------------------

    def _start_reading(self) -> None:
        if self._is_reading:
            return
        try:
            self._listener.readers.add(self._socket, self._readable)
        except OSError as error:
            self.close(FAILED, detail=_no_room(error))
        else:
            self._is_reading = True

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._listener.readers.remove(self._socket)

    def _pause(self, reason: Pause) -> None:
        self._pauses |= reason
        self.machine.is_paused = True

    def _resume_from(self, reason: Pause) -> None:
        self._pauses &= ~reason
        self.machine.is_paused = bool(self._pauses)

    def mute(self, until: float) -> None:
        """Handle no request before `until`, in monotonic seconds; a longer mute stays."""
        if self.is_closed or until <= max(self.muted_until, self._listener.now()):
            return
        self.muted_until = until
        self._pause(Pause.MUTED)
        if not self._in_turn:
            self._stop_reading()
        deadlines = self._listener.deadlines
        deadlines.remove(self)
        deadlines.add(self, math.ceil((until - self._listener.now()) * 1000))

    def expire(self) -> None:
        """End the mute; the deadlines call this."""
        self._resume_from(Pause.MUTED)
        self._go_on()

    def hold(self) -> None:
        """Pause until the current request ends; only one request at a time may do so."""
        assert not self._pauses & Pause.HELD, "two requests hold the connection"
        self._pause(Pause.HELD)
        if not self._in_turn:
            self._stop_reading()

    def let_go(self) -> None:
        if not self.is_closed:
            self._resume_from(Pause.HELD)
            if not self._in_turn:
                self._go_on()

    def _go_on(self) -> None:
        """Continue reading if no pause is left, or close if the broker stops.

        The only place that decides whether a paused connection may continue.
        """
        if self._is_stopping:
            if not self.is_busy:
                self.close(STOPPED)
            return
        if self._is_reading or self.is_closed:
            return
        self._weigh_output()
        if not self.machine.can_read:
            return
        if self.machine.has_held:
            # In a separate slice: many connections may resume in one turn.
            self._pause(Pause.SPENT)
            self._listener.readers.go_on_later(self._take_slice)
        else:
            self._start_reading()

    def _weigh_output(self) -> None:
        bound = 0 if self._listener.is_crowded else RESUME_OUTPUT_BYTES
        if self.output.size > bound:
            self._pause(Pause.CHOKED)
        else:
            self._resume_from(Pause.CHOKED)

    def stop(self) -> None:
        """Take no further request, and close once all are answered; the broker stops."""
        self._is_stopping = True
        self._stop_reading()
        self._go_on()

    # -- the end ---------------------------------------------------------------------------------

    def watch(self, call: Closing) -> None:
        if self._watching is None:
            self._watching = set()
        self._watching.add(call)

    def unwatch(self, call: Closing) -> None:
        assert self._watching is not None, "no call watched"
        self._watching.discard(call)

    def disconnect(self, reason: str) -> None:
        """Close the connection for a handler; earlier requests still get their responses."""
        self._flush()
        self.close(DISCONNECTED, detail=reason)

    def failed(self) -> None:
        """Close the connection after a handler's bug, which is logged already."""
        self._flush()
        self.close(FAILED)

    def close(self, reason: str, *, detail: str | None = None) -> None:
        """Close the connection, in any state. Further calls do nothing."""
        if self.is_closed:
            return
        self.is_closed = True
        listener = self._listener
        self._stop_reading()
        if self._is_writing:
            listener.loop.remove_writer(self._socket)
        self._socket.close()
        self.machine.close()
        self.output.close()
        self._count_output()
        if self._pauses & Pause.MUTED:
            listener.deadlines.remove(self)
        release_all(self._held_ranges or ())
        watching, self._watching = self._watching, None
        listener.closed(self, reason, detail)
        for call in watching or ():
            call.channel_closed()

    def _hold(self, buffers: Iterable[Sized]) -> None:
        ranges = [item for item in buffers if isinstance(item, FileRange)]
        if ranges:
            if self._held_ranges is None:
                self._held_ranges = set()
            self._held_ranges.update(ranges)


def _no_room(error: OSError) -> str:
    return f"the kernel has no room to watch one more socket: {error}"
