"""Decides what the subscriptions of one socket do together: names, room, rights. Pure.

A report about a subscription that has ended meanwhile leads to no action.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gateway.access.grants import NOTHING, Names
from gateway.kafka.member import NotAssigned
from gateway.kafka.readers.values import News
from gateway.kafka.values import Place
from gateway.rest.codes import ApiError, Code, internal, known
from gateway.rest.records.question import Format
from gateway.ws import frames
from gateway.ws.actions import Action, Drop, Feed, LetGo, Open, Say
from gateway.ws.frames import MAX_PLACES, Subscribe
from gateway.ws.openings import joining_of, opening_of
from gateway.ws.permissions import Permissions
from gateway.ws.subscription import Subscription

# Each has a task; a page that needs more of them opens a second socket.
MAX_SUBSCRIPTIONS: Final = 16


class Subscriptions:
    """The subscriptions of one socket, by `sid`, the name that the client gives to each."""

    def __init__(self) -> None:
        self._by_sid: dict[str, Subscription] = {}
        # Those of the caller, once it is known.
        self._permissions: Permissions | None = None

    # --- the caller, for the admission of readers --------------------------------------------

    @property
    def key(self) -> str:
        return "" if self._permissions is None else self._permissions.caller.key

    @property
    def readable(self) -> Names:
        """Return the topics whose records the caller may read, as far as known."""
        return NOTHING if self._permissions is None else self._permissions.reader.readable

    def refusal(self, topic: str) -> ApiError:
        assert self._permissions is not None, "a caller without a name subscribes"
        return self._permissions.reader.refusal(topic)

    # --- frames of the client ----------------------------------------------------------------

    def add(self, frame: Subscribe) -> list[Action]:
        """Begin a subscription. Raises ApiError for one that is refused."""
        if frame.sid in self._by_sid:
            raise ApiError(
                Code.CONSUMER_EXISTS, f"{frame.sid!r} is subscribed already: unsubscribe it first"
            )
        if len(self._by_sid) >= MAX_SUBSCRIPTIONS:
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
        refusal = self._refusal(subscription)
        if refusal is not None:
            raise refusal
        self._by_sid[frame.sid] = subscription
        return [opening]

    def remove(self, sid: str) -> list[Action]:
        """End a subscription as its client asks."""
        return self._end(self.find(sid), "unsubscribed")

    def find(self, sid: str) -> Subscription:
        """Return a subscription. Raises ApiError if there is none of this name."""
        try:
            return self._by_sid[sid]
        except KeyError:
            raise ApiError(
                Code.NOT_FOUND, f"there is no subscription {sid!r} on this socket"
            ) from None

    def clear(self) -> list[Action]:
        """End all subscriptions with their socket."""
        actions: list[Action] = [LetGo(sid) for sid in self._by_sid]
        self._by_sid.clear()
        return actions

    # --- rights ------------------------------------------------------------------------------

    def permit(self, permissions: Permissions) -> list[Action]:
        """Replace the permissions, and end what they do not allow any more."""
        self._permissions = permissions
        actions: list[Action] = []
        for subscription in list(self._by_sid.values()):
            sid = subscription.sid
            refusal = self._refusal(subscription)
            if refusal is not None:
                actions += self._end(subscription, "failed", refusal)
            elif lost := subscription.drop_unreadable(self.readable):
                revoked = frames.revoked(sid, lost, "not allowed", is_over=False)
                actions += [Drop(sid, lost), Say(revoked)]
        return actions

    def _refusal(self, subscription: Subscription) -> ApiError | None:
        assert self._permissions is not None, "a caller without a name subscribes"
        return self._permissions.refusal_to_read(
            subscription.topics, group=subscription.group, pattern=subscription.pattern
        )

    # --- room --------------------------------------------------------------------------------

    def reserve(self, sid: str, places: Collection[Place]) -> None:
        """Reserve room for the partitions of a subscription. Raises ApiError if there is none."""
        left = self._room(sid)
        if len(places) > left:
            raise ApiError(
                Code.TOO_MANY,
                f"{len(places)} partitions are asked for, and a socket reads {MAX_PLACES} at most,"
                f" {left} more now: name some by assign, or open another socket",
            )
        if sid in self._by_sid:
            self._by_sid[sid].places = set(places)

    def reserve_more(self, sid: str, places: Sequence[Place]) -> int:
        """Reserve room for new partitions; return how many of them, from the first, fit."""
        subscription = self._by_sid.get(sid)
        if subscription is None:
            return 0
        count = max(0, self._room(sid) - len(subscription.places))
        subscription.places.update(places[:count])
        return min(count, len(places))

    def _room(self, sid: str) -> int:
        others = (one for one in self._by_sid.values() if one.sid != sid)
        return MAX_PLACES - sum(len(one.places) for one in others)

    # --- reports of the readers --------------------------------------------------------------

    def begin(self, sid: str, positions: Mapping[Place, int]) -> list[Action]:
        """Report the partitions of a subscription and their positions, and read them."""
        subscription = self._by_sid.get(sid)
        if subscription is None:
            return [LetGo(sid)]
        subscription.places = set(positions)
        subscription.is_open = True
        # Rights may have changed since the request.
        lost = subscription.drop_unreadable(self.readable)
        kept = {place: positions[place] for place in subscription.places}
        dropped = [Drop(sid, lost)] if lost else []
        return [*dropped, Say(frames.assigned(sid, kept)), Feed(sid)]

    def fail(self, sid: str, error: Exception) -> list[Action]:
        """End a subscription whose reader failed."""
        subscription = self._by_sid.get(sid)
        return [] if subscription is None else self._end(subscription, "failed", api_error(error))

    def allowance(self, sid: str) -> tuple[int, int] | None:
        """Return how many records and bytes may be taken for a subscription now."""
        subscription = self._by_sid.get(sid)
        return None if subscription is None else subscription.allowance

    def read(self, sid: str, news: Sequence[News], ends: Mapping[Place, int]) -> list[Action]:
        """Send what was read for a subscription, and end it if nothing more can arrive."""
        subscription = self._by_sid.get(sid)
        if subscription is None:
            return []
        actions = subscription.send(news, ends)
        if subscription.is_over:
            del self._by_sid[sid]
            actions.append(LetGo(sid))
        return actions

    # --- reports of members of groups --------------------------------------------------------

    def note_topics(self, sid: str, topics: Collection[str]) -> None:
        """Note the topics that the pattern of a group's member matches at present."""
        if sid in self._by_sid:
            self._by_sid[sid].topics = frozenset(topics)

    def note_join(self, sid: str) -> None:
        """Note that a member has joined; its partitions are assigned later."""
        if sid in self._by_sid:
            self._by_sid[sid].is_open = True

    def assign(self, sid: str, places: Collection[Place]) -> list[Action]:
        """Report the partitions that a group assigns to its member, if they have changed."""
        subscription = self._by_sid.get(sid)
        return [] if subscription is None else subscription.assign(places)

    def report_move(self, sid: str, offsets: Mapping[Place, int]) -> list[Action]:
        """Report the new positions of a group's member after a seek."""
        return self._continue(sid, frames.assigned(sid, offsets))

    def report_failed_move(self, sid: str, error: Exception) -> list[Action]:
        """Report that a seek of a group's member failed; it reads on as before."""
        return self._continue(sid, frames.error(api_error(error), sid=sid))

    def _continue(self, sid: str, text: str) -> list[Action]:
        subscription = self._by_sid.get(sid)
        if subscription is None:
            return []
        subscription.is_open = True
        return [Say(text), Feed(sid)]

    def report_failed_hold(self, sid: str, error: Exception) -> list[Action]:
        return self._report(sid, frames.error(api_error(error), sid=sid))

    def report_commit(self, sid: str, offsets: Mapping[Place, int]) -> list[Action]:
        return self._report(sid, frames.acked(sid, offsets))

    def report_failed_commit(self, sid: str, error: Exception) -> list[Action]:
        return self._report(sid, frames.error(api_error(error), sid=sid))

    def _report(self, sid: str, text: str) -> list[Action]:
        return [Say(text)] if sid in self._by_sid else []

    def end_unused(self, sid: str) -> list[Action]:
        """End a subscription whose client gave no credit for so long that its group suffers."""
        subscription = self._by_sid.get(sid)
        return [] if subscription is None else self._end(subscription, "no credit for too long")

    def _end(
        self, subscription: Subscription, reason: str, error: ApiError | None = None
    ) -> list[Action]:
        sid = subscription.sid
        del self._by_sid[sid]
        revoked = frames.revoked(sid, sorted(subscription.places), reason, is_over=True)
        errors = [] if error is None else [Say(frames.error(error, sid=sid))]
        return [LetGo(sid), *errors, Say(revoked)]


def api_error(failed: Exception) -> ApiError:
    """Return a failure as its client sees it."""
    if isinstance(failed, NotAssigned):
        return ApiError(Code.NO_PARTITION, f"{failed} was given to another member meanwhile")
    return known(failed) or internal()
