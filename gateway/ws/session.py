"""Decides what a socket does after each event. Pure: it does no I/O.

Each method takes an event and returns the actions to execute, in order. No record is sent beyond
the client's credit, and none is dropped for lack of it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from gateway.access.callers import Caller
from gateway.access.grants import NOTHING, Names
from gateway.access.operations import Kind, Operation
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.member import NotAssigned
from gateway.kafka.readers.values import Begin, End, Gap, News
from gateway.kafka.values import Delivered, Place, Record
from gateway.rest.codes import ApiError, Code, from_kafka
from gateway.rest.records.question import Format
from gateway.ws import frames
from gateway.ws.actions import (
    Action,
    Close,
    Commit,
    Drop,
    Feed,
    Hold,
    Identify,
    LetGo,
    Move,
    Open,
    Say,
    Send,
)
from gateway.ws.frames import (
    MAX_CREDIT_BYTES,
    MAX_CREDIT_RECORDS,
    MAX_PLACES,
    Ack,
    Auth,
    Credit,
    Pause,
    Ping,
    Produce,
    Resume,
    Said,
    Seek,
    Subscribe,
    Unsubscribe,
)
from gateway.ws.openings import joining_of, opening_of, positions_of
from gateway.ws.subscription import Subscription

# Each has a task; a page that needs more of them opens a second socket.
MAX_SUBSCRIPTIONS: Final = 16
# Records of a client without a receipt: some hundred milliseconds of the fastest client.
MAX_UNDER_WAY: Final = 1_000
# Close codes: that of the standard if a worker stops; for an error, this plus its HTTP status, as
# in 4401.
RESTARTING: Final = 1012
FAILED: Final = 4000
# Bytes of UTF-8 that fit into a close frame beside the code.
MAX_REASON: Final = 120


class Session:
    """One socket, from its handshake to its end."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._caller: Caller | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._under_way = 0
        self._is_draining = False
        self.is_over = False

    @property
    def caller(self) -> Caller | None:
        return self._caller

    @property
    def is_full(self) -> bool:
        """Tell whether receipts have to arrive before more records may be sent."""
        return self._under_way >= MAX_UNDER_WAY

    # --- who it is ---------------------------------------------------------------------------

    def known(self, caller: Caller) -> list[Action]:
        """Note the caller, at first or again: rights may have changed."""
        if self._caller is not None and self._caller.key != caller.key:
            return self.failed(
                ApiError(
                    Code.NOT_ALLOWED,
                    f"this socket is of {self._caller.key}: open another one for {caller.key}",
                )
            )
        is_new = self._caller is None
        self._caller = caller
        actions: list[Action] = []
        if is_new:
            actions.append(Say(frames.ready(self._cluster_id, caller.key)))
        for subscription in list(self._subscriptions.values()):
            refused = self._refusal_to_go_on(subscription)
            if refused is not None:
                actions += self._ended(subscription, refused)
            elif lost := self._unreadable(subscription):
                subscription.places.difference_update(lost)
                told = frames.revoked(subscription.sid, lost, "not allowed", is_over=False)
                actions += [Drop(subscription.sid, lost), Say(told)]
        return actions

    @property
    def readable(self) -> Names:
        """Return the topics whose records the caller may read, as far as known."""
        if self._caller is None:
            return NOTHING
        return self._caller.rights.names(
            Operation.READ_PAYLOADS, cluster=self._cluster_id, kind=Kind.TOPIC
        )

    def late(self) -> list[Action]:
        """End a socket that has not authenticated in time."""
        if self._caller is not None:
            return []
        return self.failed(
            ApiError(Code.TIMED_OUT, 'no token came: send {"type":"auth","token":"…"} at first')
        )

    # --- what the client says ----------------------------------------------------------------

    def heard_bytes(self) -> list[Action]:
        return self.failed(
            ApiError(Code.UNSUPPORTED_TYPE, "frames are text, and this one is binary")
        )

    def heard(self, text: str) -> list[Action]:
        if self.is_over:
            return []
        try:
            frame = frames.parsed(text)
        except ApiError as error:
            if self._caller is None:
                return self.failed(error)
            return [Say(frames.error(error))]
        if self._caller is None and not isinstance(frame, Auth):
            return self.failed(
                ApiError(Code.NOT_AUTHENTICATED, "say who you are first, by a frame auth")
            )
        try:
            return self._taken(frame)
        except ApiError as error:
            return [Say(frames.error(error, **names_of(frame)))]

    def _taken(self, frame: Said) -> list[Action]:
        match frame:
            case Auth(token=token):
                return [Identify(token)]
            case Produce():
                return self._produce(frame)
            case Subscribe():
                return self._subscribe(frame)
            case Credit():
                return self._credit(frame)
            case Pause() | Resume():
                return self._hold(frame)
            case Ack() | Seek():
                return self._ack(frame) if isinstance(frame, Ack) else self._seek(frame)
            case Unsubscribe():
                return self._unsubscribe(frame)
            case Ping(id=name):
                return [Say(frames.pong(name))]

    def _produce(self, frame: Produce) -> list[Action]:
        if self._is_draining:
            raise draining()
        self._require(Operation.PRODUCE, [frame.topic])
        record = frames.record_in(frame)
        self._under_way += 1
        return [Send(frame.id, frame.topic, record)]

    def _subscribe(self, frame: Subscribe) -> list[Action]:
        if self._is_draining:
            raise draining()
        if frame.sid in self._subscriptions:
            raise ApiError(
                Code.CONSUMER_EXISTS, f"{frame.sid!r} is subscribed already: unsubscribe it first"
            )
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise ApiError(Code.TOO_MANY, f"a socket has {MAX_SUBSCRIPTIONS} subscriptions at most")
        opening = opening_of(frame) if frame.group is None else joining_of(frame, frame.group)
        topics = frozenset(opening.topics)
        if isinstance(opening, Open):
            topics |= {place.topic for place in opening.starts}
        subscription = Subscription(
            frame.sid,
            Format(frame.format),
            frame.credit.records,
            frame.credit.bytes,
            topics,
            frame.group,
            opening.pattern,
        )
        refused = self._refusal_to_go_on(subscription)
        if refused is not None:
            raise refused
        self._subscriptions[frame.sid] = subscription
        return [opening]

    def _unsubscribe(self, frame: Unsubscribe) -> list[Action]:
        subscription = self._find(frame.sid)
        del self._subscriptions[frame.sid]
        told = frames.revoked(frame.sid, sorted(subscription.places), "unsubscribed", is_over=True)
        return [LetGo(frame.sid), Say(told)]

    def _credit(self, frame: Credit) -> list[Action]:
        subscription = self._find(frame.sid)
        records = subscription.records + frame.records
        size = (subscription.bytes or 0) + frame.bytes
        if records > MAX_CREDIT_RECORDS or size > MAX_CREDIT_BYTES:
            raise ApiError(
                Code.UNPROCESSABLE,
                f"{records} records and {size} bytes would be allowed, and {MAX_CREDIT_RECORDS} and"
                f" {MAX_CREDIT_BYTES} can be: give credit as records are done with",
            )
        subscription.records = records
        if subscription.bytes is not None:
            subscription.bytes = size
        return [Feed(frame.sid)]

    def _hold(self, frame: Pause | Resume) -> list[Action]:
        subscription, named = self._open_one(frame.sid), frame.partitions
        is_paused = isinstance(frame, Pause)
        if subscription.group is not None and named is None:
            subscription.is_paused = is_paused
            # Resuming all also resumes partitions that were paused by themselves.
            resumed = [] if is_paused else [Hold(frame.sid, None, is_paused)]
            return [*resumed, Feed(frame.sid)]
        places = None if named is None else [one.place() for one in named]
        for place in places or ():
            self._require_place(subscription, place)
        return [Hold(frame.sid, places, is_paused)]

    def _ack(self, frame: Ack) -> list[Action]:
        subscription = self._open_one(frame.sid)
        if subscription.group is None:
            raise ApiError(
                Code.ILLEGAL_STATE,
                f"subscription {frame.sid!r} has no group that would keep an offset",
            )
        offsets = {one.place(): one.offset for one in frame.offsets}
        for place in offsets:
            self._require_place(subscription, place)
        return [Commit(frame.sid, offsets)]

    def _seek(self, frame: Seek) -> list[Action]:
        subscription = self._open_one(frame.sid)
        starts = positions_of(frame.offsets)
        for place in starts:
            self._require_place(subscription, place)
        subscription.is_open = False
        return [Move(frame.sid, starts)]

    # --- what comes of it --------------------------------------------------------------------

    def reserve(self, sid: str, places: Collection[Place]) -> None:
        """Reserve room for the partitions of a subscription. Raises ApiError if there is none."""
        left = self._room(sid)
        if len(places) > left:
            raise ApiError(
                Code.TOO_MANY,
                f"{len(places)} partitions are asked for, and a socket reads {MAX_PLACES} at most,"
                f" {left} more now: name some by assign, or open another socket",
            )
        if sid in self._subscriptions:
            self._subscriptions[sid].places = set(places)

    def take_up(self, sid: str, places: Sequence[Place]) -> int:
        """Reserve room for new partitions; return how many of them, from the first, fit."""
        subscription = self._subscriptions.get(sid)
        if subscription is None:
            return 0
        count = max(0, self._room(sid) - len(subscription.places))
        subscription.places.update(places[:count])
        return min(count, len(places))

    def _room(self, sid: str) -> int:
        others = (one for one in self._subscriptions.values() if one.sid != sid)
        return MAX_PLACES - sum(len(one.places) for one in others)

    def matched(self, sid: str, topics: Collection[str]) -> None:
        """Note the topics that the pattern of a group's member matches at present."""
        if sid in self._subscriptions:
            self._subscriptions[sid].topics = frozenset(topics)

    def opened(self, sid: str, positions: Mapping[Place, int]) -> list[Action]:
        subscription = self._subscriptions.get(sid)
        if subscription is None:
            return [LetGo(sid)]
        subscription.places = set(positions)
        subscription.is_open = True
        # Rights may have changed since the request.
        lost = self._unreadable(subscription)
        subscription.places.difference_update(lost)
        kept = {place: positions[place] for place in subscription.places}
        dropped = [Drop(sid, lost)] if lost else []
        return [*dropped, Say(frames.assigned(sid, kept)), Feed(sid)]

    def joined(self, sid: str) -> list[Action]:
        """Note that a member has joined; its partitions are assigned later."""
        subscription = self._subscriptions.get(sid)
        if subscription is not None:
            subscription.is_open = True
        return []

    def shared_out(self, sid: str, places: Collection[Place]) -> list[Action]:
        """Report partitions that a group assigned to or revoked from a subscription, if any."""
        subscription = self._subscriptions.get(sid)
        if subscription is None or subscription.places == set(places):
            return []
        gone, new = subscription.places - set(places), set(places) - subscription.places
        subscription.places = set(places)
        actions: list[Action] = []
        if gone:
            actions.append(Say(frames.revoked(sid, sorted(gone), "rebalanced", is_over=False)))
        if new:
            actions.append(Say(frames.joined(sid, new)))
        return actions

    def moved(self, sid: str, offsets: Mapping[Place, int]) -> list[Action]:
        """Report the new positions of a group's member after a seek."""
        subscription = self._subscriptions.get(sid)
        if subscription is None:
            return []
        subscription.is_open = True
        return [Say(frames.assigned(sid, offsets)), Feed(sid)]

    def not_moved(self, sid: str, failed: Exception) -> list[Action]:
        """Report that a seek of a group's member failed; reading continues as before."""
        subscription = self._subscriptions.get(sid)
        if subscription is None:
            return []
        subscription.is_open = True
        return [Say(frames.error(api_error(failed), sid=sid)), Feed(sid)]

    def not_held(self, sid: str, failed: Exception) -> list[Action]:
        if sid not in self._subscriptions:
            return []
        return [Say(frames.error(api_error(failed), sid=sid))]

    def committed(
        self, sid: str, offsets: Mapping[Place, int], failed: Exception | None
    ) -> list[Action]:
        if sid not in self._subscriptions:
            return []
        if failed is not None:
            return [Say(frames.error(api_error(failed), sid=sid))]
        return [Say(frames.acked(sid, offsets))]

    def unused(self, sid: str) -> list[Action]:
        """End a subscription whose client gave no credit for so long that its group suffers."""
        subscription = self._subscriptions.pop(sid, None)
        if subscription is None:
            return []
        places = sorted(subscription.places)
        told = frames.revoked(sid, places, "no credit for too long", is_over=True)
        return [LetGo(sid), Say(told)]

    def not_opened(self, sid: str, failed: Exception) -> list[Action]:
        subscription = self._subscriptions.get(sid)
        return [] if subscription is None else self._ended(subscription, api_error(failed))

    def allowance(self, sid: str) -> tuple[int, int] | None:
        """Return how many records and bytes may be taken for a subscription now."""
        subscription = self._subscriptions.get(sid)
        return None if subscription is None else subscription.allowance

    def read(self, sid: str, news: Sequence[News], ends: Mapping[Place, int]) -> list[Action]:
        """Send the records that were taken: their credit is used, whatever happened meanwhile."""
        subscription = self._subscriptions.get(sid)
        if subscription is None:
            return []
        actions: list[Action] = []
        # They come before all other news of their partitions.
        if begun := {one.place: one.offset for one in news if isinstance(one, Begin)}:
            actions.append(Say(frames.assigned(sid, begun)))
        for place, some in groupby(news, key=place_of):
            actions += self._told(subscription, place, list(some), ends.get(place))
        if subscription.is_over:
            del self._subscriptions[sid]
            actions.append(LetGo(sid))
        return actions

    def _told(
        self, subscription: Subscription, place: Place, news: Sequence[News], end: int | None
    ) -> Iterator[Action]:
        sid = subscription.sid
        for kind, some in groupby(news, key=type):
            if kind is Record:
                records = [one for one in some if isinstance(one, Record)]
                text = frames.batch(sid, records, subscription.format, end)
                subscription.records -= len(records)
                if subscription.bytes is not None:
                    subscription.bytes -= len(text)
                yield Say(text)
                continue
            for one in some:
                if isinstance(one, Gap):
                    yield Say(frames.gap(sid, one))
                elif isinstance(one, End):
                    subscription.places.discard(place)
                    reason = f"{one.name}: {one.message}"
                    yield Say(frames.revoked(sid, [place], reason, is_over=subscription.is_over))

    def settled(self, name: str, topic: str, told: Delivered | Exception) -> list[Action]:
        """Send the result of a record."""
        self._under_way -= 1
        if isinstance(told, Delivered):
            actions: list[Action] = [Say(frames.receipt(name, topic, told))]
        else:
            actions = [Say(frames.error(api_error(told), id=name))]
        return actions + self._drained()

    def throttled(self, name: str, wait_s: float) -> list[Action]:
        return [Say(frames.throttle(wait_s, name))]

    # --- its end -----------------------------------------------------------------------------

    def drain(self) -> list[Action]:
        """Start nothing new; end when the last receipt has been sent."""
        if self.is_over or self._is_draining:
            return []
        self._is_draining = True
        actions: list[Action] = [LetGo(sid) for sid in self._subscriptions]
        self._subscriptions.clear()
        return actions + self._drained()

    def _drained(self) -> list[Action]:
        if not self._is_draining or self._under_way or self.is_over:
            return []
        self.is_over = True
        return [Close(RESTARTING, "this worker stops: connect again")]

    def failed(self, error: ApiError) -> list[Action]:
        """End the socket with a reason, such as an invalid or expired credential."""
        if self.is_over:
            return []
        self.is_over = True
        actions: list[Action] = [LetGo(sid) for sid in self._subscriptions]
        self._subscriptions.clear()
        code = FAILED + error.code.status
        return [*actions, Say(frames.error(error)), Close(code, reason_of(error.message))]

    # --- rights ------------------------------------------------------------------------------

    def _require(self, operation: Operation, topics: Sequence[str]) -> None:
        refused = self._refusal(operation, topics)
        if refused is not None:
            raise refused

    def _refusal_to_go_on(self, subscription: Subscription) -> ApiError | None:
        assert self._caller is not None, "a caller without a name was let in"
        if subscription.group is not None:
            refused = self._refusal(Operation.RESET_GROUPS, [subscription.group], Kind.GROUP)
            if refused is not None:
                return refused
        if subscription.pattern is not None and not self.readable:
            return ApiError(
                Code.NOT_ALLOWED,
                f"{subscription.pattern.text!r} matches no topic whose payloads you may read: "
                f"{self._caller.remedy(Operation.READ_PAYLOADS, Kind.TOPIC, '*')}",
            )
        return self._refusal(Operation.READ_PAYLOADS, subscription.topics)

    def _unreadable(self, subscription: Subscription) -> list[Place]:
        """Return partitions of topics that matched a pattern but are no longer readable."""
        if subscription.pattern is None or subscription.group is not None:
            return []
        readable = self.readable
        return sorted(place for place in subscription.places if place.topic not in readable)

    def _refusal(
        self, operation: Operation, names: Collection[str], kind: Kind = Kind.TOPIC
    ) -> ApiError | None:
        assert self._caller is not None, "a caller without a name was let in"
        for name in names:
            decision = self._caller.decide(operation, kind, self._cluster_id, name)
            if not decision.is_allowed:
                return ApiError(Code.NOT_ALLOWED, decision.reason)
        return None

    def _ended(self, subscription: Subscription, error: ApiError) -> list[Action]:
        del self._subscriptions[subscription.sid]
        sid, places = subscription.sid, sorted(subscription.places)
        told = frames.revoked(sid, places, "failed", is_over=True)
        return [LetGo(sid), Say(frames.error(error, sid=sid)), Say(told)]

    def _find(self, sid: str) -> Subscription:
        try:
            return self._subscriptions[sid]
        except KeyError:
            raise ApiError(
                Code.NOT_FOUND, f"there is no subscription {sid!r} on this socket"
            ) from None

    def _open_one(self, sid: str) -> Subscription:
        subscription = self._find(sid)
        if not subscription.is_open:
            raise ApiError(
                Code.ILLEGAL_STATE, f"subscription {sid!r} is not assigned yet: wait for `assigned`"
            )
        return subscription

    def _require_place(self, subscription: Subscription, place: Place) -> None:
        if place not in subscription.places:
            raise ApiError(
                Code.NO_PARTITION, f"subscription {subscription.sid!r} does not read {place}"
            )


def reason_of(message: str) -> str:
    """Return as much of a message as fits into a close frame."""
    return message.encode("utf-8", "replace")[:MAX_REASON].decode("utf-8", "ignore")


def draining() -> ApiError:
    return ApiError(Code.UNAVAILABLE, "this worker stops: connect again, and send it again")


def api_error(failed: Exception) -> ApiError:
    if isinstance(failed, ApiError):
        return failed
    if isinstance(failed, KafkaFailure):
        return from_kafka(failed)
    if isinstance(failed, NotAssigned):
        return ApiError(Code.NO_PARTITION, f"{failed} was given to another member meanwhile")
    return ApiError(Code.INTERNAL, "the gateway failed; its log says how, `./samsa logs` too")


def names_of(frame: Said) -> dict[str, str]:
    """Return the fields of a frame that its answer repeats."""
    if isinstance(frame, Produce):
        return {"id": frame.id}
    if isinstance(frame, Auth | Ping):
        return {}
    return {"sid": frame.sid}


def place_of(news: News) -> Place:
    if isinstance(news, Record):
        return Place(topic=news.topic, partition=news.partition)
    return news.place
