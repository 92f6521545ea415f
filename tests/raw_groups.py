"""Groups by their requests alone: members of both protocols that do what a test says, and no more.

A member here sends no heartbeat unless it is told to, so a group stays as a test has set it up for
as long as its session lasts. Every refusal is `GroupError`.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from brokers.coordination.groups.subscription import encode_assignment
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages import consumer_group_describe as modern
from brokers.protocol.messages import consumer_group_heartbeat as beat
from brokers.protocol.messages import describe_groups as classic
from brokers.protocol.messages import find_coordinator as finding
from brokers.protocol.messages import heartbeat as classic_beat
from brokers.protocol.messages import join_group as joining
from brokers.protocol.messages import leave_group as leave
from brokers.protocol.messages import list_groups as listing
from brokers.protocol.messages import offset_commit as commit
from brokers.protocol.messages import offset_fetch as fetch
from brokers.protocol.messages import sync_group as sync
from tests.wire import Wire

SESSION_MS = 60_000
FIND_SECONDS = 30.0
PAUSE_SECONDS = 0.05
PROTOCOL = "range"
# What a coordinator says that is not ready yet, or that is another one by now.
ELSEWHERE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)

Place = tuple[str, int]
T = TypeVar("T")


class GroupError(Exception):
    """The coordinator refused."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)  # type: ignore[call-arg]
        super().__init__(self.code.name)


def check(code: int) -> None:
    if code:
        raise GroupError(code)


def patiently(ask: Callable[[], T], *, seconds: float = FIND_SECONDS) -> T:
    """Ask again while nobody is there, or somebody who is not ready."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except (OSError, GroupError) as error:
            is_moving = isinstance(error, OSError) or error.code in ELSEWHERE
            if not is_moving or time.monotonic() > deadline:
                raise
        threading.Event().wait(PAUSE_SECONDS)


def coordinator(bootstrap: str, group: str) -> tuple[int, str]:
    """Return the broker that coordinates a group, and its address."""

    def find() -> tuple[int, str]:
        with Wire(bootstrap) as wire:
            asked = finding.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            (found,) = wire.ask(asked, 4).coordinators
        check(found.error_code)
        return found.node_id, f"{found.host}:{found.port}"

    return patiently(find)


def subscription(topics: Iterable[str]) -> bytes:
    """Write the subscription of a classic member, version 0."""
    names = [topic.encode() for topic in topics]
    listed = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    return b"\0\0" + len(names).to_bytes(4, "big") + listed + b"\xff\xff\xff\xff"


class Coordinated:
    """A group at its coordinator, asked over one connection."""

    def __init__(self, bootstrap: str, group: str, *, finds: bool = True) -> None:
        """`finds`: ask where it is coordinated; otherwise that broker itself is given."""
        self.group = group
        self.wire = Wire(coordinator(bootstrap, group)[1] if finds else bootstrap)

    def close(self) -> None:
        self.wire.close()

    def commit(
        self,
        offsets: Mapping[Place, int],
        *,
        member_id: str = "",
        generation: int = -1,
        metadata: str = "",
    ) -> None:
        """Commit, as nobody or as a member; the first error is raised."""
        topics: dict[str, list[commit.OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            part = commit.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(topic, []).append(part)
        request = commit.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                commit.OffsetCommitRequestTopic(name=name, partitions=parts)
                for name, parts in topics.items()
            ],
        )
        for topic in self.wire.ask(request, 9).topics:
            for part in topic.partitions:
                check(part.error_code)

    def offsets(self) -> dict[Place, int]:
        """All that the group has committed."""
        asked = fetch.OffsetFetchRequestGroup(group_id=self.group, topics=None)
        (told,) = self.wire.ask(fetch.OffsetFetchRequest(groups=[asked]), 8).groups
        check(told.error_code)
        return {
            (topic.name, part.partition_index): part.committed_offset
            for topic in told.topics
            for part in topic.partitions
        }

    def listed(self) -> Any:
        """The group as it is listed, or None."""
        told = self.wire.ask(listing.ListGroupsRequest(), 5)
        check(told.error_code)
        return next((each for each in told.groups if each.group_id == self.group), None)

    def members(self) -> set[str]:
        """The ids of the members, of either protocol."""
        return {each.member_id for each in self.described().members}

    def described(self) -> Any:
        """The group as its protocol's own request describes it."""
        listed = self.listed()
        if listed is not None and listed.group_type == "consumer":
            asked = modern.ConsumerGroupDescribeRequest(group_ids=[self.group])
            (told,) = self.wire.ask(asked, 1).groups
        else:
            (told,) = self.wire.ask(classic.DescribeGroupsRequest(groups=[self.group]), 5).groups
        check(told.error_code)
        return told

    # -- members ---------------------------------------------------------------------------------

    def join(
        self, topics: Iterable[str], *, instance_id: str | None = None, member_id: str = ""
    ) -> joining.JoinGroupResponse:
        """Join by the classic protocol; a newcomer is given its id and comes again."""
        request = self._joining(topics, instance_id, member_id)
        told: joining.JoinGroupResponse = self.wire.ask(request, 9)
        if told.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(topics, instance_id=instance_id, member_id=told.member_id)
        check(told.error_code)
        return told

    def send_join(self, topics: Iterable[str]) -> None:
        """Begin to join as a newcomer; `joined` waits for the others."""
        asked = self._joining(topics, None, "")
        told = self.wire.ask(asked, 9)
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.wire.send(self._joining(topics, None, told.member_id), 9)

    def joined(self) -> joining.JoinGroupResponse:
        told: joining.JoinGroupResponse = self.wire.answer(joining.JoinGroupRequest(), 9)
        check(told.error_code)
        return told

    def _joining(
        self, topics: Iterable[str], instance_id: str | None, member_id: str
    ) -> joining.JoinGroupRequest:
        return joining.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[
                joining.JoinGroupRequestProtocol(name=PROTOCOL, metadata=subscription(topics))
            ],
        )

    def sync(
        self,
        member_id: str,
        generation: int,
        assigned: Mapping[str, Mapping[str, Iterable[int]]],
        *,
        instance_id: str | None = None,
    ) -> None:
        """Bring an assignment as the leader, or none as a follower."""
        request = sync.SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=[
                sync.SyncGroupRequestAssignment(
                    member_id=each,
                    assignment=encode_assignment(
                        {topic: frozenset(indexes) for topic, indexes in topics.items()}, 0
                    ),
                )
                for each, topics in assigned.items()
            ],
        )
        check(self.wire.ask(request, 5).error_code)

    def heartbeat(self, member_id: str, generation: int) -> None:
        request = classic_beat.HeartbeatRequest(
            group_id=self.group, member_id=member_id, generation_id=generation
        )
        check(self.wire.ask(request, 4).error_code)

    def leave(self, member_id: str) -> None:
        request = leave.LeaveGroupRequest(
            group_id=self.group, members=[leave.MemberIdentity(member_id=member_id)]
        )
        told = self.wire.ask(request, 5)
        check(told.error_code)
        for member in told.members:
            check(member.error_code)

    def enter(self, topics: Iterable[str]) -> tuple[str, int]:
        """Join by the consumer protocol; return the member's id and epoch."""
        member_id = str(uuid.uuid4())
        told = self.beat(
            member_id,
            0,
            rebalance_timeout_ms=SESSION_MS,
            subscribed_topic_names=list(topics),
            topic_partitions=[],
        )
        return member_id, told.member_epoch

    def beat(self, member_id: str, epoch: int, **said: Any) -> beat.ConsumerGroupHeartbeatResponse:
        request = beat.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=member_id, member_epoch=epoch, **said
        )
        told: beat.ConsumerGroupHeartbeatResponse = self.wire.ask(request, 1)
        check(told.error_code)
        return told
