"""Decides what a socket does after each event. Pure: it does no I/O.

Each method takes an event and returns the actions to execute, in order. No record is sent beyond
the client's credit, and none is dropped for lack of it.
"""

from typing import Final

from gateway.access.callers import Caller
from gateway.access.operations import Operation
from gateway.kafka.values import Delivered
from gateway.rest.codes import ApiError, Code
from gateway.ws import frames
from gateway.ws.actions import Action, Close, Identify, Say, Send
from gateway.ws.frames import (
    Ack,
    Auth,
    ClientFrame,
    Credit,
    Pause,
    Ping,
    Produce,
    Resume,
    Seek,
    Subscribe,
    Unsubscribe,
)
from gateway.ws.permissions import Permissions
from gateway.ws.subscriptions import Subscriptions, api_error

# Records of a client without a receipt: some hundred milliseconds of the fastest client.
MAX_UNDER_WAY: Final = 1_000
# Close codes: that of the standard if a worker stops; for an error, this plus its HTTP status, as
# in 4401.
RESTARTING: Final = 1012
FAILED: Final = 4000
# Bytes of UTF-8 that fit into a close frame beside the code.
MAX_REASON: Final = 120


class Session:
    """One socket, from its handshake to its end. Its readers report to `subscriptions`."""

    def __init__(self, cluster_id: str) -> None:
        self.subscriptions: Final = Subscriptions()
        self._cluster_id = cluster_id
        self._permissions: Permissions | None = None
        self._under_way = 0
        self._is_draining = False
        self.is_over = False

    @property
    def caller(self) -> Caller | None:
        return None if self._permissions is None else self._permissions.caller

    @property
    def is_full(self) -> bool:
        """Tell whether receipts have to arrive before more records may be sent."""
        return self._under_way >= MAX_UNDER_WAY

    # --- the caller --------------------------------------------------------------------------

    def identified(self, caller: Caller) -> list[Action]:
        """Note the caller, at first or again: rights may have changed."""
        known = self.caller
        if known is not None and known.key != caller.key:
            return self.fail(
                ApiError(
                    Code.NOT_ALLOWED,
                    f"this socket is of {known.key}: open another one for {caller.key}",
                )
            )
        self._permissions = Permissions(caller, self._cluster_id)
        ready = [Say(frames.ready(self._cluster_id, caller.key))] if known is None else []
        return [*ready, *self.subscriptions.permit(self._permissions)]

    def auth_timed_out(self) -> list[Action]:
        """End a socket that has not authenticated in time."""
        if self.caller is not None:
            return []
        return self.fail(
            ApiError(Code.TIMED_OUT, 'no token arrived: send {"type":"auth","token":"…"} first')
        )

    # --- frames of the client ----------------------------------------------------------------

    def bytes_received(self) -> list[Action]:
        return self.fail(ApiError(Code.UNSUPPORTED_TYPE, "frames are text, and this one is binary"))

    def text_received(self, text: str) -> list[Action]:
        if self.is_over:
            return []
        try:
            frame = frames.parsed(text)
        except ApiError as error:
            return self.fail(error) if self.caller is None else [Say(frames.error(error))]
        if self.caller is None and not isinstance(frame, Auth):
            return self.fail(
                ApiError(Code.NOT_AUTHENTICATED, "authenticate first, by a frame auth")
            )
        try:
            return self._handle(frame)
        except ApiError as error:
            return [Say(frames.error(error, **names_of(frame)))]

    def _handle(self, frame: ClientFrame) -> list[Action]:
        subscriptions = self.subscriptions
        match frame:
            case Auth(token=token):
                return [Identify(token)]
            case Produce():
                return self._produce(frame)
            case Subscribe():
                self._require_running()
                return subscriptions.add(frame)
            case Credit() | Pause() | Resume() | Ack() | Seek():
                return subscriptions.find(frame.sid).handle(frame)
            case Unsubscribe():
                return subscriptions.remove(frame.sid)
            case Ping(id=name):
                return [Say(frames.pong(name))]

    def _produce(self, frame: Produce) -> list[Action]:
        self._require_running()
        assert self._permissions is not None, "a caller without a name writes"
        refusal = self._permissions.refusal(Operation.PRODUCE, [frame.topic])
        if refusal is not None:
            raise refusal
        record = frames.record_in(frame)
        self._under_way += 1
        return [Send(frame.id, frame.topic, record)]

    def _require_running(self) -> None:
        if self._is_draining:
            raise ApiError(
                Code.UNAVAILABLE, "this worker stops: connect again, and send the record again"
            )

    # --- records on their way ----------------------------------------------------------------

    def delivered(self, name: str, topic: str, result: Delivered | Exception) -> list[Action]:
        """Send the receipt of a record, or why there is none."""
        self._under_way -= 1
        if isinstance(result, Delivered):
            answer = frames.receipt(name, topic, result)
        else:
            answer = frames.error(api_error(result), id=name)
        return [Say(answer), *self._close_if_drained()]

    def throttled(self, name: str, wait_s: float) -> list[Action]:
        return [Say(frames.throttle(wait_s, name))]

    # --- the end -----------------------------------------------------------------------------

    def drain(self) -> list[Action]:
        """Start nothing new; end when the last receipt has been sent."""
        if self.is_over or self._is_draining:
            return []
        self._is_draining = True
        return [*self.subscriptions.clear(), *self._close_if_drained()]

    def _close_if_drained(self) -> list[Action]:
        if not self._is_draining or self._under_way or self.is_over:
            return []
        self.is_over = True
        return [Close(RESTARTING, "this worker stops: connect again")]

    def fail(self, error: ApiError) -> list[Action]:
        """End the socket with a reason, such as an invalid or expired credential."""
        if self.is_over:
            return []
        self.is_over = True
        code = FAILED + error.code.status
        return [
            *self.subscriptions.clear(),
            Say(frames.error(error)),
            Close(code, reason_of(error.message)),
        ]


def reason_of(message: str) -> str:
    """Return as much of a message as fits into a close frame."""
    return message.encode("utf-8", "replace")[:MAX_REASON].decode("utf-8", "ignore")


def names_of(frame: ClientFrame) -> dict[str, str]:
    """Return the fields of a frame that its answer repeats."""
    if isinstance(frame, Produce):
        return {"id": frame.id}
    if isinstance(frame, Auth | Ping):
        return {}
    return {"sid": frame.sid}
