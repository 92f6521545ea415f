"""A consumer group at a desk: requests go in by keyword, and each outcome is replayed as well."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups import modern_heartbeat, modern_leave
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.modern import ConsumerGroup, ConsumerMember
from brokers.coordination.groups.modern_changes import Change, Draft
from brokers.coordination.groups.modern_desk import Place
from brokers.coordination.groups.modern_records import change_of, write
from brokers.coordination.groups.records import OffsetKey, decode_key
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import Claim, Operation, Outcome, Record
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.builders import clusters
from tests.fakes.clock import ManualClock

GROUP = "readers"
WHO = Who("client", "/127.0.0.1")


def cluster(**topics: int) -> ClusterImage:
    return clusters.image([clusters.topic(name, partitions=n) for name, n in topics.items()])


def changes_of(outcome: Outcome[Any]) -> list[Change]:
    """What the bytes of an outcome's records say; they say what the operation meant."""
    changes = []
    for record in outcome.records:
        key = decode_key(record.key)
        assert key is not None
        assert not isinstance(key, OffsetKey)
        change = change_of(key, Record(record.key, record.value))
        assert change is not None
        assert change == record.decoded == change_of(key, record)
        changes.append(change)
    return changes


def recomputed(group: ConsumerGroup) -> ConsumerGroup:
    """The group with all that follows from its members made anew, the slow and plain way."""
    members = group.members.values()
    owners: dict[bytes, dict[int, str]] = {}
    for member in members:
        for given in (member.assigned, member.revoking):
            for topic_id, partitions in given.items():
                if partitions:
                    owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.id))
    return replace(
        group,
        instances={m.instance_id: m.id for m in members if m.instance_id is not None},
        name_counts=Counter(name for m in members for name in m.names),
        regex_counts=Counter(m.regex for m in members if m.regex),
        assignor_votes=Counter(m.assignor for m in members if m.assignor),
        supporters=Counter(name for m in members if m.classic for name, _ in m.classic.protocols),
        owners=owners,
        classic_count=sum(m.classic is not None for m in members),
    )


class Desk:
    """One group and a clock; `group` is what the last outcome made of it."""

    def __init__(self, image: ClusterImage, **settings: Any) -> None:
        numbers: dict[str, Any] = {"assignment_interval_ms": 0, **settings}
        self.clock = ManualClock()
        self.group: ConsumerGroup | None = None
        self.replayed = ConsumerGroup(id=GROUP)
        self.outcome: Outcome[Any] = Outcome()
        self._ids = (f"made-{number}" for number in count())
        self.place = Place(
            settings=GroupSettings(**numbers),
            image=image,
            topics_version=image.version,
            write=write,
            new_id=lambda: next(self._ids),
            resolved=self._resolved,
        )

    def show(self, image: ClusterImage) -> None:
        """The cluster has changed, and the group is told."""
        self.place = replace(self.place, image=image, topics_version=image.version)
        if self.group is not None:
            self.group = replace(self.group, is_metadata_stale=True)

    def member(self, member_id: str) -> ConsumerMember:
        assert self.group is not None
        return self.group.members[member_id]

    def assigned(self, member_id: str) -> dict[bytes, set[int]]:
        return {topic: set(given) for topic, given in self.member(member_id).assigned.items()}

    def join(
        self, member_id: str, *names: str, regex: str | None = None, **said: Any
    ) -> ConsumerGroupHeartbeatResponse:
        said = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], **said}
        subscribed = None if regex is not None and not names else list(names)
        return self.beat(
            member_id, 0, subscribed_topic_names=subscribed, subscribed_topic_regex=regex, **said
        )

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        owned: Mapping[bytes, Any] | None = None,
        **said: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        if owned is not None:
            said["topic_partitions"] = [
                TopicPartitions(topic_id=topic, partitions=list(numbers))
                for topic, numbers in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, **said
        )
        now_ms = self.clock.now_ms()
        if epoch < 0:
            return self.take(modern_leave.leave(self.group, request, self.place, now_ms))
        quick = modern_heartbeat.steady(self.group, request, WHO, self.place, now_ms)
        slow = modern_heartbeat.heartbeat(self.group, request, WHO, self.place, now_ms)
        if quick is not None:
            # The short way says what the long one would have said.
            assert not slow.records
            assert (quick.response, quick.timers) == (slow.response, slow.timers)
        return self.take(quick or slow)

    def take(self, outcome: Outcome[Any]) -> Any:
        """Applies an outcome; what its records say alone is the same group."""
        self.outcome = outcome
        draft = Draft(self.replayed)
        self.replayed = draft.take_all(changes_of(outcome))
        for soft in outcome.soft:
            assert isinstance(soft, GroupBecame)
            assert soft.group is None or isinstance(soft.group, ConsumerGroup)
            self.group = soft.group
        if self.group is not None:
            assert self.replayed == self.group == recomputed(self.group)
        return outcome.response

    def run_jobs(self) -> None:
        """Does the work that the last outcome asked for, and takes up its result."""
        for job in self.outcome.jobs:
            for _ in job.steps():
                pass
            outcome = job.done().run(None, self.clock.now_ms(), 0)
            assert outcome is not None
            self.take(outcome)

    def _resolved(
        self, group_id: str, found: Mapping[str, frozenset[str]], version: int
    ) -> Operation[Any]:
        def run(shard: Any, now_ms: int, ticket: int) -> Outcome[Any]:
            return modern_heartbeat.regexes_resolved(
                self.group, dict(found), version, self.place, now_ms
            )

        return Operation(name="regexes", subject=group_id, claim=Claim.EXCLUSIVE, run=run)
