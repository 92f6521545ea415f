"""Clients of both protocols as they behave, each with its own view of what it reads.

A classic one is eager, and gives up all before it joins, or cooperative, and reads on. The leader
of a classic group assigns as assignors do: evenly, and what somebody else still has to nobody yet;
it alone looks whether topics grow.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from brokers.coordination.groups.subscription import decode_subscription, encode_assignment
from brokers.coordination.shard import PARKED
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.builders import mixed_groups as mixed
from tests.builders.clusters import topic_id
from tests.builders.mixed_groups import GROUP, subscription
from tests.fakes.group_desk import GroupDesk

Places = set[tuple[str, int]]
LOST = {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


def by_topic(places: Iterable[tuple[str, int]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for topic, number in places:
        found.setdefault(topic, set()).add(number)
    return found


class Client:
    """What both kinds have; `is_gone` once it has been told that another one has its instance."""

    kind = ""

    def __init__(self, desk: GroupDesk, name: str, names: list[str], instance: str | None) -> None:
        self.desk = desk
        self.id = ""
        self.name = name
        self.names = names
        self.instance = instance
        self.epoch = 0
        self.reads: Places = set()
        self.is_gone = False

    def step(self) -> None:
        """Does the next thing that it would do by itself."""
        raise NotImplementedError

    def commit(self, place: tuple[str, int], offset: int) -> bool:
        """Whether the commit was taken."""
        taken = mixed.commit(self.desk, self.id, self.epoch, place, offset=offset)
        assert taken in {ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH, *LOST, *AGAIN}, taken
        return taken is ErrorCode.NONE


class ConsumerClient(Client):
    """Speaks the consumer protocol; what it shall give up it gives up at its next step."""

    kind = "consumer"

    def __init__(self, desk: GroupDesk, name: str, names: list[str], instance: str | None) -> None:
        super().__init__(desk, name, names, instance)
        self.id = name
        self.told: Places | None = None

    def step(self) -> None:
        if self.told is not None:
            self.reads &= self.told
        said: dict[str, Any] = {"instance_id": self.instance}
        if self.epoch == 0:
            said |= {"subscribed_topic_names": self.names, "rebalance_timeout_ms": 30_000}
        owned = {topic_id(topic): numbers for topic, numbers in by_topic(self.reads).items()}
        answer = mixed.beat(self.desk, self.id, self.epoch, owned=owned, **said)
        if isinstance(answer, KafkaError):
            self._refused(answer)
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            names = self.desk.image.names
            self.told = {
                (names[topic.topic_id], number)
                for topic in answer.assignment.topic_partitions
                for number in topic.partitions
            }
            self.reads |= self.told

    def _refused(self, error: KafkaError) -> None:
        self.reads, self.told, self.epoch = set(), None, 0
        gone = {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}
        self.is_gone = error.code in gone
        known = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
        assert self.is_gone or error.code in known, error

    def leave(self, *, for_a_while: bool = False) -> None:
        if self.epoch > 0:
            away = -2 if for_a_while and self.instance else -1
            mixed.beat(self.desk, self.id, away, instance_id=self.instance)


class ClassicClient(Client):
    """Speaks the classic protocol."""

    kind = "classic"

    def __init__(
        self,
        desk: GroupDesk,
        name: str,
        names: list[str],
        instance: str | None,
        *,
        is_cooperative: bool,
    ) -> None:
        super().__init__(desk, name, names, instance)
        self.is_cooperative = is_cooperative
        self.must_join = True
        # The last ticket and what it was for, while its answer is not there.
        self.waits: tuple[str, int] | None = None
        self.epoch = -1
        # What it brings to its sync, between the answer to its join and that.
        self.brings: tuple[dict[str, bytes] | None] | None = None
        # How large its topics were when it assigned, as long as it leads.
        self.sizes: dict[str, int] | None = None

    @property
    def protocol(self) -> str:
        return "cooperative" if self.is_cooperative else "eager"

    def step(self) -> None:
        if self.waits is not None:
            what, ticket = self.waits
            if ticket not in self.desk.answers:
                return
            self.waits = None
            self._hear(what, self.desk.answers[ticket])
        elif self.brings is not None:
            self._sync(*self.brings)
        elif self.must_join or (self.sizes is not None and self.sizes != self._sizes()):
            self._join()
        else:
            code = mixed.heartbeat(self.desk, self.id, self.epoch, instance_id=self.instance)
            self._mind(code)

    def _sizes(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self.desk.image.topics.items()}

    def _join(self) -> None:
        if not self.is_cooperative:
            self.reads = set()
        said = subscription(self.names, by_topic(self.reads), generation=self.epoch)
        answer = mixed.join(
            self.desk, self.id, instance_id=self.instance, protocols={self.protocol: said}
        )
        self._took("join", answer)

    def _took(self, what: str, answer: Any) -> None:
        if answer is PARKED:
            self.waits = (what, max(self.desk.parked))
        else:
            self._hear(what, answer)

    def _hear(self, what: str, answer: Any) -> None:
        if what == "join":
            self._joined(answer)
        elif self._mind(mixed.code(answer)):
            self._assigned(answer)

    def _mind(self, code: ErrorCode) -> bool:
        """Does what an error asks for; tells whether there is none."""
        if code is ErrorCode.NONE:
            return True
        if code in LOST:
            self.reads, self.epoch = set(), -1
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.id = ""
        self.is_gone = code is ErrorCode.FENCED_INSTANCE_ID
        assert self.is_gone or code in LOST | AGAIN, code
        self.must_join = True
        return False

    def _joined(self, answer: Any) -> None:
        code = mixed.code(answer)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            self._join()
            return
        if not self._mind(code):
            return
        self.id, self.epoch, self.must_join = answer.member_id, answer.generation_id, False
        assignments, self.sizes = None, None
        if answer.leader == self.id and answer.members and not answer.skip_assignment:
            self.sizes = self._sizes()
            assignments = self._led({m.member_id: bytes(m.metadata) for m in answer.members})
        self.brings = (assignments,)

    def _sync(self, assignments: dict[str, bytes] | None) -> None:
        self.brings = None
        synced = mixed.sync(
            self.desk,
            self.id,
            self.epoch,
            assignments,
            instance_id=self.instance,
            protocol_name=self.protocol,
        )
        self._took("sync", synced)

    def _assigned(self, answer: Any) -> None:
        has = {(topic, n) for topic, numbers in mixed.assigned(answer).items() for n in numbers}
        gives_up = self.reads - has
        self.reads = has
        # Cooperative clients join once more, so that others get what they have given up.
        self.must_join = bool(gives_up) and self.is_cooperative

    def _led(self, members: Mapping[str, bytes]) -> dict[str, bytes]:
        said = {known: decode_subscription(data) for known, data in members.items()}
        claims: dict[tuple[str, int], tuple[int, str]] = {}
        for known, subscribed in said.items():
            assert subscribed is not None
            for topic, numbers in subscribed.owned.items():
                for number in numbers:
                    claim = (subscribed.generation, known)
                    claims[topic, number] = max(claim, claims.get((topic, number), claim))
        shares: dict[str, Places] = {known: set() for known in members}
        for topic, described in sorted(self.desk.image.topics.items()):
            readers = [known for known, s in sorted(said.items()) if s and topic in s.topics]
            for number in range(len(described.partitions)) if readers else ():
                to = readers[number % len(readers)]
                # Nobody is asked to let go and another one to begin in the same generation.
                if claims.get((topic, number), (0, to))[1] == to:
                    shares[to].add((topic, number))
        return {
            known: encode_assignment({t: frozenset(n) for t, n in by_topic(share).items()}, 3)
            for known, share in shares.items()
        }

    def leave(self) -> None:
        if self.id:
            mixed.leave(self.desk, (self.id, self.instance))


__all__ = ["GROUP", "ClassicClient", "Client", "ConsumerClient"]
