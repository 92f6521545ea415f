"""Commands of stories about groups: one shard of a coordinator, and members of both protocols.

All members are in the group `readers`. A member is known by its name; the story remembers its
member id and its generation or epoch, as a client would.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from brokers.coordination.groups import offset_operations
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup, Given
from brokers.coordination.groups.records import (
    ConsumerGroupKey,
    CurrentMemberKey,
    GroupKey,
    Key,
    MemberKey,
    OffsetKey,
    PartitionMetadataKey,
    RegexKey,
    TargetKey,
    TargetMemberKey,
    key_of,
)
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.subscription import decode_assignment, encode_assignment
from brokers.coordination.shard import PARKED, Outcome
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.delete_groups import DeleteGroupsResponse
from tests.builders import clusters
from tests.builders import mixed_groups as mixed
from tests.builders.mixed_groups import GROUP
from tests.fakes.group_desk import GroupDesk
from tests.stories.script import Commands, Milliseconds, counted

CLASSIC, CONSUMER = "classic", "consumer"
LEAVES: Final = -1
# What a record holds, by the type of its key.
WRITTEN: Final[Mapping[type[Key], str]] = {
    GroupKey: "classic group",
    ConsumerGroupKey: "group epoch",
    MemberKey: "member",
    TargetKey: "target epoch",
    TargetMemberKey: "target",
    CurrentMemberKey: "current assignment",
    RegexKey: "matches of a regular expression",
    PartitionMetadataKey: "topics",
}

# The answers to a heartbeat of a classic member that say what to do next.
HEARD: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.NONE: "continues",
    ErrorCode.REBALANCE_IN_PROGRESS: "REBALANCE_IN_PROGRESS, join again",
}

Partitions = Mapping[str, Iterable[int]]


@dataclass(slots=True)
class Member:
    """What a client knows of its membership."""

    name: str
    protocol: str
    id: str = ""
    epoch: int = 0


def commands(_folder: Path) -> Commands:
    groups = Groups()
    return {
        "topic": groups.topic,
        "delete-topic": groups.delete_topic,
        "join": groups.join,
        "sync": groups.sync,
        "heartbeat": groups.heartbeat,
        "leave": groups.leave,
        "wait": groups.wait,
        "group": groups.group,
        "commit": groups.commit,
        "offsets": groups.offsets,
        "expire-offsets": groups.expire_offsets,
        "delete-group": groups.delete_group,
        "records": groups.records,
        "restart": groups.restart,
    }


class Groups:
    """The state of one story."""

    def __init__(self) -> None:
        self._desk = GroupDesk(clusters.image(), GroupSettings())
        self._members: dict[str, Member] = {}
        # The requests without an answer yet, by ticket.
        self._waiting: dict[int, tuple[Member, str]] = {}
        self._records_shown = 0

    # -- the cluster and time --------------------------------------------------------------------

    def topic(self, name: str, *, partitions: int) -> Iterator[str]:
        """Create a topic, or give it more partitions."""
        topic = clusters.topic(name, partitions=partitions)
        self._desk.change(clusters.with_topics(self._desk.image, topic))
        yield f"topic {name} has {counted(partitions, 'partition')}"

    def delete_topic(self, name: str) -> Iterator[str]:
        self._desk.change(clusters.without(self._desk.image, name))
        yield f"topic {name} is deleted"

    def wait(self, time: Milliseconds) -> Iterator[str]:
        """Let time pass, and the timers that are due by then fire."""
        before = self._ids()
        self._desk.pass_time(time)
        answers = list(self._answered())
        yield from answers
        gone = before - self._ids()
        yield from (f"{self._name(one)} is no longer a member" for one in sorted(gone))
        if not answers and not gone:
            yield "nothing happens"

    def restart(self) -> Iterator[str]:
        """Move the group to another coordinator, which reads the records of the former one."""
        desk = self._desk
        desk.take(Outcome(replies=tuple(desk.shard.unloaded())))
        yield from self._answered()
        desk.check()
        desk.shard = desk.loaded()
        desk.timers.clear()
        for outcome in desk.started():
            desk.take(outcome)
        yield f"the new coordinator has read {len(desk.records)} records"

    # -- members ---------------------------------------------------------------------------------

    def join(
        self,
        name: str,
        *,
        topics: tuple[str, ...] = ("orders",),
        protocol: str = CLASSIC,
    ) -> Iterator[str]:
        """Send JoinGroup, or the first ConsumerGroupHeartbeat of a member."""
        member = self._members.setdefault(name, Member(name, protocol))
        if member.protocol == CONSUMER:
            member.id = name
            answer = mixed.enter(self._desk, name, *topics)
            yield from self._hear_heartbeat(member, answer)
        else:
            protocols = {"range": mixed.subscription(topics)}
            answer = mixed.join(self._desk, member.id, protocols=protocols)
            yield from self._take(member, "join", answer)
        yield from self._answered()

    def sync(self, name: str, *shares: str) -> Iterator[str]:
        """Send SyncGroup; the leader adds the shares, each as `alice:orders:0,1`."""
        member = self._members[name]
        assignments = {}
        for share in shares:
            owner, _, text = share.partition(":")
            numbers = {topic: frozenset(some) for topic, some in _partitions(text).items()}
            assignments[self._members[owner].id] = encode_assignment(numbers, 3)
        answer = mixed.sync(self._desk, member.id, member.epoch, assignments)
        yield from self._take(member, "sync", answer)
        yield from self._answered()

    def heartbeat(self, name: str, *, owns: str = "") -> Iterator[str]:
        """Send the heartbeat of the member's protocol, with the partitions that it owns now."""
        member = self._members[name]
        if member.protocol == CONSUMER:
            owned = {clusters.topic_id(topic): some for topic, some in _partitions(owns).items()}
            answer = mixed.beat(self._desk, member.id, member.epoch, owned=owned if owns else None)
            yield from self._hear_heartbeat(member, answer)
        else:
            found = mixed.heartbeat(self._desk, member.id, member.epoch)
            yield f"{name}: {HEARD.get(found, found.name)}"
        yield from self._answered()

    def leave(self, name: str) -> Iterator[str]:
        member = self._members.pop(name)
        if member.protocol == CONSUMER:
            found = mixed.code(mixed.beat(self._desk, member.id, LEAVES))
        else:
            (found,) = mixed.leave(self._desk, (member.id, None))
        yield f"{name} leaves" if found is ErrorCode.NONE else f"{name}: {found.name}"
        yield from self._answered()

    def group(self) -> Iterator[str]:
        """Describe the group and its members."""
        match self._desk.shard.group(GROUP):
            case ClassicGroup() as group:
                yield from self._describe_classic(group)
            case ConsumerGroup() as group:
                yield from self._describe_consumer(group)
            case _:
                yield "the group does not exist"

    # -- offsets ---------------------------------------------------------------------------------

    def commit(self, topic: str, partition: int, offset: int, *, member: str = "") -> Iterator[str]:
        """Commit an offset as a member, or without one."""
        known = self._members.get(member, Member("", CLASSIC, epoch=-1))
        found = mixed.commit(self._desk, known.id, known.epoch, (topic, partition), offset=offset)
        said = f"committed {offset}" if found is ErrorCode.NONE else found.name
        yield f"{topic} {partition}: {said}"

    def offsets(self) -> Iterator[str]:
        found = sorted(self._desk.shard.offsets.of(GROUP).items())
        yield from (f"{topic} {index}: {committed.offset}" for (topic, index), committed in found)
        if not found:
            yield "the group has no offsets"

    def expire_offsets(self) -> Iterator[str]:
        """Do what the coordinator does every ten minutes."""
        before, had_group = set(self._desk.shard.offsets.of(GROUP)), self._exists()
        self._desk.chores()
        gone = before - set(self._desk.shard.offsets.of(GROUP))
        yield from (f"{topic} {index}: expired" for topic, index in sorted(gone))
        if had_group and not self._exists():
            yield "the group is deleted"
        elif not gone:
            yield "nothing expires"

    def delete_group(self) -> Iterator[str]:
        answer = self._desk.ask(offset_operations.delete_group(GROUP, DeleteGroupsResponse()))
        if isinstance(answer, KafkaError):
            yield f"{answer.code.name}: {answer.message}"
        else:
            yield "the group is deleted"

    def records(self) -> Iterator[str]:
        """List the records that were written since the last `records`."""
        new = self._desk.records[self._records_shown :]
        self._records_shown = len(self._desk.records)
        for record in new:
            key = key_of(record)
            assert key is not None, "all records of these stories have a known key"
            yield self._written(key) + (" deleted" if record.value is None else "")
        if not new:
            yield "no records"

    # -- answers ---------------------------------------------------------------------------------

    def _take(self, member: Member, kind: str, answer: Any) -> Iterator[str]:
        if answer is not PARKED:
            yield from self._hear(member, kind, answer)
            return
        self._waiting[max(self._desk.parked)] = member, kind
        what = "the other members" if kind == "join" else "the leader's assignment"
        yield f"{member.name} waits for {what}"

    def _answered(self) -> Iterator[str]:
        """Yield the answers that have come to requests that waited."""
        for ticket in sorted(self._waiting.keys() - self._desk.parked):
            member, kind = self._waiting.pop(ticket)
            yield from self._hear(member, kind, self._desk.answers[ticket])

    def _hear(self, member: Member, kind: str, answer: Any) -> Iterator[str]:
        found = mixed.code(answer)
        if found is ErrorCode.MEMBER_ID_REQUIRED:
            member.id = answer.member_id
            yield f"{member.name}: MEMBER_ID_REQUIRED, join again as {member.id}"
        elif found is not ErrorCode.NONE:
            yield f"{member.name}: {found.name}"
        elif kind == "sync":
            yield f"{member.name} gets {_words(mixed.assigned(answer))}"
        else:
            member.id, member.epoch = answer.member_id, answer.generation_id
            yield f"{member.name} is in generation {member.epoch}{self._role(member, answer)}"

    def _role(self, member: Member, answer: Any) -> str:
        if answer.leader != member.id:
            return ""
        names = sorted(self._name(each.member_id) for each in answer.members)
        return f" and leads {', '.join(names)}"

    def _hear_heartbeat(self, member: Member, answer: Any) -> Iterator[str]:
        if isinstance(answer, KafkaError):
            yield f"{member.name}: {answer.code.name}: {answer.message}"
            return
        member.epoch = answer.member_epoch
        news = ""
        if answer.assignment is not None:
            given = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
            news = f", assigned {_words(self._by_name(given))}"
        yield f"{member.name}: epoch {member.epoch}{news}"

    # -- descriptions ----------------------------------------------------------------------------

    def _describe_classic(self, group: ClassicGroup) -> Iterator[str]:
        leader = f", leader {self._name(group.leader)}" if group.leader else ""
        yield f"classic, {group.state.value}, generation {group.generation}{leader}"
        for member_id in group.members:
            assignment = decode_assignment(group.assignments.get(member_id, b""))
            has = {} if assignment is None else assignment.partitions
            yield f"  {self._name(member_id)}: {_words(has)}"

    def _describe_consumer(self, group: ConsumerGroup) -> Iterator[str]:
        yield f"consumer, {group.state.value}, epoch {group.epoch}"
        for member in group.members.values():
            kind = "" if member.classic is None else " of the classic protocol"
            has = _words(self._given(member.assigned))
            revoking = self._given(member.revoking)
            more = f", has to revoke {_words(revoking)}" if revoking else ""
            yield f"  {self._name(member.id)}{kind}: epoch {member.epoch}, {has}{more}"

    # -- words -----------------------------------------------------------------------------------

    def _exists(self) -> bool:
        return self._desk.shard.group(GROUP) is not None or GROUP in self._desk.shard.offsets

    def _ids(self) -> set[str]:
        group = self._desk.shard.group(GROUP)
        return set() if group is None else set(group.members)

    def _name(self, member_id: str | None) -> str:
        known = {member.id: member.name for member in self._members.values()}
        return known.get(member_id or "", str(member_id))

    def _given(self, given: Given) -> Partitions:
        return self._by_name({topic_id: sorted(some) for topic_id, some in given.items() if some})

    def _by_name(self, given: Mapping[bytes, Iterable[int]]) -> Partitions:
        return {self._desk.image.names[topic_id]: some for topic_id, some in given.items()}

    def _written(self, key: Key) -> str:
        if isinstance(key, OffsetKey):
            return f"offset of {key.topic} {key.partition}"
        what = WRITTEN[type(key)]
        if isinstance(key, MemberKey | TargetMemberKey | CurrentMemberKey):
            return f"{what} of {self._name(key.member_id)}"
        return what


def _partitions(text: str) -> dict[str, list[int]]:
    """Parse `orders:0,1/payments:2`."""
    found = {}
    for part in filter(None, text.split("/")):
        topic, _, numbers = part.partition(":")
        found[topic] = [int(number) for number in filter(None, numbers.split(","))]
    return found


def _words(partitions: Partitions) -> str:
    said = [f"{topic} {' '.join(map(str, sorted(some)))}" for topic, some in partitions.items()]
    return ", ".join(said) or "no partitions"
