"""Makes the calls of a group's member: join, commit, seek, leave.

Joins with the consumer protocol, or with the classic one if the cluster supports no other. The
client of the library is created on demand, since one that was subscribed accepts no assignment.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from gateway.kafka.clients import Settings, make_consumer
from gateway.kafka.connection import PATIENCE_S, Connection, Reach
from gateway.kafka.errors import from_exception, translated
from gateway.kafka.polling import PASSING, consume, require_cluster
from gateway.kafka.roster import Roster
from gateway.kafka.values import Place

# How long the coordinator, or a leader, may take to answer one request.
ANSWER_S: Final = 10.0
# A coordinator without the consumer protocol, or not with it for this group, refuses the first
# request. The library reports a fatal error, with the reason only in its text.
NOT_SPOKEN: Final = "ConsumerGroupHeartbeat"
REFUSALS: Final = frozenset(
    {
        KafkaError._FATAL,  # noqa: SLF001 - a documented constant
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - as above
        KafkaError.UNSUPPORTED_VERSION,
    }
)


class Protocol(Enum):
    CONSUMER = "consumer"
    CLASSIC = "classic"


class Closed(Exception):
    """The client has left its group for good."""


class GroupClient:
    """One client of a group. Not thread-safe. Close it, or the group waits for its session."""

    def __init__(
        self,
        connection: Connection,
        group: str,
        *uses: Settings,
        roster: Roster | None,
    ) -> None:
        self._connection = connection
        self._group = group
        self._uses = uses
        self._roster = roster
        self._protocol = Protocol.CONSUMER
        self._client: Consumer | None = None
        self.is_closed = False
        self.reach = Reach(connection.bootstrap)

    @property
    def is_open(self) -> bool:
        return self._client is not None

    def open(self) -> Consumer:
        """Return the library's client. Raises Closed after `close`."""
        if self.is_closed:
            raise Closed(self._group)
        if self._client is None:
            protocol = {"group.protocol": self._protocol.value}
            self._client = make_consumer(
                self._connection, self.reach, *self._uses, protocol, group=self._group
            )
        return self._client

    def subscribe(
        self,
        topics: Sequence[str],
        *,
        on_assign: Callable[[set[Place]], None],
        on_revoke: Callable[[set[Place]], None],
    ) -> None:
        def pass_assignment(_client: Consumer, places: list[TopicPartition]) -> None:
            on_assign({_place(each) for each in places})

        def pass_revocation(_client: Consumer, places: list[TopicPartition]) -> None:
            on_revoke({_place(each) for each in places})

        with self._failures():
            client = self.open()
            if self._roster is not None:
                self._roster.enter(self._group, client.memberid())
            client.subscribe(
                list(topics),
                on_assign=pass_assignment,
                on_revoke=pass_revocation,
                on_lost=pass_revocation,
            )

    def assign(self, places: Iterable[Place]) -> None:
        """Read partitions without dividing them with other members."""
        with self._failures():
            self.open().assign([_at(place) for place in places])

    def consume(self, most: int, wait_s: float) -> list[Message]:
        return consume(self.open(), most, wait_s)

    def keep_membership(self) -> None:
        """Poll without records: the library leaves a group after max.poll.interval.ms."""
        self.open().consume(0, 0)

    def refuses_protocol(self, error: KafkaError) -> bool:
        """Return whether an error says that the group refuses the consumer protocol."""
        is_about_joining = error.code() in REFUSALS and NOT_SPOKEN in (error.str() or "")
        return is_about_joining and self._protocol is Protocol.CONSUMER

    def use_classic(self) -> None:
        """Leave; the next client joins with the classic protocol."""
        self.leave()
        self._protocol = Protocol.CLASSIC

    def require_cluster(self) -> None:
        require_cluster(self.open(), self.reach, PATIENCE_S)

    def store(self, offsets: Mapping[Place, int]) -> None:
        """Let the library commit these offsets soon."""
        try:
            self.open().store_offsets(offsets=_all_at(offsets))
        except KafkaException as error:
            # The next owner of a partition that was just revoked reads it again.
            if error.args[0].code() not in PASSING:
                raise from_exception(error, f"group {self._group}") from error

    def commit(self, offsets: Mapping[Place, int], *, waits: bool) -> None:
        with self._failures():
            if not waits:
                self.open().commit(offsets=_all_at(offsets), asynchronous=True)
                return
            answers = self.open().commit(offsets=_all_at(offsets), asynchronous=False)
        for answer in answers or ():
            if answer.error is not None:
                raise translated(answer.error, f"group {self._group}")

    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """Return the committed offsets of those partitions that have one."""
        with self._failures():
            answers = self.open().committed([_at(place) for place in places], timeout=ANSWER_S)
        found = {}
        for answer in answers:
            if answer.error is not None:
                raise translated(answer.error, str(_place(answer)))
            if answer.offset >= 0:
                found[_place(answer)] = answer.offset
        return found

    def seek(self, place: Place, offset: int, *, is_last: bool) -> bool:
        """Continue at another offset; return False, or fail at last, if it is not fetched yet."""
        try:
            self.open().seek(_at(place, offset))
        except KafkaException as error:
            if is_last or error.args[0].code() not in PASSING:
                raise from_exception(error, str(place)) from error
            return False
        return True

    def at_times(self, times: Mapping[Place, int]) -> dict[Place, int]:
        """Return the offset of a time in each partition; OFFSET_END if no record is late enough."""
        with self._failures():
            answers = self.open().offsets_for_times(_all_at(times), timeout=ANSWER_S)
        return {_place(answer): answer.offset for answer in answers}

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the ends of partitions as their leaders last reported; sends no request."""
        found = {}
        for place in places:
            try:
                # None where nothing is cached, which its stubs do not know.
                bounds: tuple[int, int] | None = self.open().get_watermark_offsets(
                    _at(place), cached=True
                )
            except KafkaException:
                # It was just revoked.
                continue
            if bounds and bounds[1] >= 0:
                found[place] = bounds[1]
        return found

    def pause(self, places: Collection[Place]) -> None:
        with self._failures():
            self.open().pause([_at(place) for place in places])

    def resume(self, places: Collection[Place]) -> None:
        with self._failures():
            self.open().resume([_at(place) for place in places])

    def leave(self) -> None:
        """Leave the group, after stored offsets are committed; `open` may join again."""
        client, self._client = self._client, None
        if client is not None:
            member = client.memberid()
            with self._failures():
                client.close()
            if self._roster is not None:
                self._roster.leave(member)

    def close(self) -> None:
        self.is_closed = True
        self.leave()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, f"group {self._group}") from error


def _at(place: Place, offset: int | None = None) -> TopicPartition:
    if offset is None:
        return TopicPartition(place.topic, place.partition)
    return TopicPartition(place.topic, place.partition, offset)


def _all_at(offsets: Mapping[Place, int]) -> list[TopicPartition]:
    return [_at(place, offset) for place, offset in offsets.items()]


def _place(found: TopicPartition) -> Place:
    return Place(topic=found.topic, partition=found.partition)
