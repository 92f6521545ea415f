"""Groups of a broker of ours that a test makes up: what clients read and change of them.

    service = GroupService()
    with served(service), broker_beside(folder, topics={"orders": 3}) as broker:
        service.groups["readers"] = MadeUpGroup(members=[...])

Nobody can join: members are values. What is committed obeys the rules that an administrator meets.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import pack
from typing import Any
from unittest.mock import patch

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    find_coordinator,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.dispatch import HandlerModule
from brokers.server.served import HANDLERS
from brokers.server.served_api import Served

# APIs of members, of whom there are none here that speak.
JOINING = {11, 12, 13, 14, 68}


@dataclass
class MadeUpMember:
    id: str
    client_id: str = "client"
    host: str = "/127.0.0.1"
    assignment: dict[str, list[int]] = field(default_factory=dict)
    # Members of a group of the consumer protocol are on their way to another assignment.
    target: dict[str, list[int]] = field(default_factory=dict)
    # As ConsumerGroupDescribe has it: 0 speaks the classic protocol, 1 the one of the group.
    protocol: int = 1


@dataclass
class MadeUpGroup:
    """Stable where it has members, empty where it has none. The type is classic or consumer."""

    type: str = "classic"
    members: list[MadeUpMember] = field(default_factory=list)
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"

    def reads(self, topic: str) -> bool:
        return any(topic in member.assignment for member in self.members)


@dataclass
class _Handler:
    SERVED: Served
    handle: Any


class GroupService:
    """Answers as a coordinator would, from `groups`."""

    def __init__(self) -> None:
        self.groups: dict[str, MadeUpGroup] = {}

    def handlers(self) -> list[HandlerModule]:
        table = {
            10: (self._find, (0, 5)),
            16: (self._list, (0, 5)),
            15: (self._describe, (0, 5)),
            69: (self._describe_consumers, (0, 1)),
            9: (self._fetch, (1, 9)),
            8: (self._commit, (2, 9)),
            42: (self._delete, (0, 2)),
            47: (self._delete_offsets, (0, 0)),
        }
        return [
            _Handler(Served(key=key, versions=versions), handle)
            for key, (handle, versions) in table.items()
        ]

    def _find(
        self, context: Context, call: Call, request: find_coordinator.FindCoordinatorRequest
    ) -> find_coordinator.FindCoordinatorResponse:
        broker = context.image.brokers[context.broker_id]
        where: dict[str, Any] = {"node_id": broker.id, "host": broker.host, "port": broker.port}
        if call.version < 4:
            return find_coordinator.FindCoordinatorResponse(**where)
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(key=key, **where) for key in request.coordinator_keys
            ]
        )

    def _list(
        self, context: Context, call: Call, request: list_groups.ListGroupsRequest
    ) -> list_groups.ListGroupsResponse:
        return list_groups.ListGroupsResponse(
            groups=[
                list_groups.ListedGroup(
                    group_id=name,
                    protocol_type="consumer",
                    group_state=group.state,
                    group_type=group.type,
                )
                for name, group in self.groups.items()
                if group.state in (request.states_filter or [group.state])
                and group.type in (request.types_filter or [group.type])
            ]
        )

    def _describe(
        self, context: Context, call: Call, request: describe_groups.DescribeGroupsRequest
    ) -> describe_groups.DescribeGroupsResponse:
        return describe_groups.DescribeGroupsResponse(
            groups=[
                _described(name, group)
                if (group := self.groups.get(name)) and group.type == "classic"
                else describe_groups.DescribedGroup(
                    error_code=ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 6 else 0,
                    error_message=f"Group {name} not found." if call.version >= 6 else None,
                    group_id=name,
                    group_state="Dead",
                )
                for name in request.groups
            ]
        )

    def _describe_consumers(
        self,
        context: Context,
        call: Call,
        request: consumer_group_describe.ConsumerGroupDescribeRequest,
    ) -> consumer_group_describe.ConsumerGroupDescribeResponse:
        found = []
        for name in request.group_ids:
            group = self.groups.get(name)
            if group is None or group.type != "consumer":
                found.append(
                    consumer_group_describe.DescribedGroup(
                        error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_id=name
                    )
                )
                continue
            found.append(
                consumer_group_describe.DescribedGroup(
                    group_id=name,
                    group_state=group.state,
                    group_epoch=1,
                    assignment_epoch=1,
                    assignor_name="uniform",
                    members=[
                        consumer_group_describe.Member(
                            member_id=member.id,
                            client_id=member.client_id,
                            client_host=member.host,
                            assignment=_assigned(member.assignment),
                            target_assignment=_assigned(member.target),
                            member_type=member.protocol if call.version >= 1 else -1,
                        )
                        for member in group.members
                    ],
                )
            )
        return consumer_group_describe.ConsumerGroupDescribeResponse(groups=found)

    def _fetch(
        self, context: Context, call: Call, request: offset_fetch.OffsetFetchRequest
    ) -> offset_fetch.OffsetFetchResponse:
        def topics(name: str, kind: Any, partitions: Any) -> list[Any]:
            by_topic: dict[str, list[Any]] = {}
            for (topic, index), offset in self.groups.get(name, MadeUpGroup()).offsets.items():
                by_topic.setdefault(topic, []).append(
                    partitions(partition_index=index, committed_offset=offset, metadata="")
                )
            return [kind(name=topic, partitions=found) for topic, found in by_topic.items()]

        if call.version < 8:
            return offset_fetch.OffsetFetchResponse(
                topics=topics(
                    request.group_id,
                    offset_fetch.OffsetFetchResponseTopic,
                    offset_fetch.OffsetFetchResponsePartition,
                )
            )
        return offset_fetch.OffsetFetchResponse(
            groups=[
                offset_fetch.OffsetFetchResponseGroup(
                    group_id=asked.group_id,
                    topics=topics(
                        asked.group_id,
                        offset_fetch.OffsetFetchResponseTopics,
                        offset_fetch.OffsetFetchResponsePartitions,
                    ),
                )
                for asked in request.groups
            ]
        )

    def _commit(
        self, context: Context, call: Call, request: offset_commit.OffsetCommitRequest
    ) -> offset_commit.OffsetCommitResponse:
        group = self.groups.setdefault(request.group_id, MadeUpGroup())
        code = ErrorCode.UNKNOWN_MEMBER_ID if group.members else ErrorCode.NONE
        for topic in request.topics:
            for part in topic.partitions:
                if code is ErrorCode.NONE:
                    group.offsets[topic.name, part.partition_index] = part.committed_offset
        return offset_commit.OffsetCommitResponse(
            topics=[
                offset_commit.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        offset_commit.OffsetCommitResponsePartition(
                            partition_index=part.partition_index, error_code=code
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _delete(
        self, context: Context, call: Call, request: delete_groups.DeleteGroupsRequest
    ) -> delete_groups.DeleteGroupsResponse:
        results = []
        for name in request.groups_names:
            group = self.groups.get(name)
            code = ErrorCode.NONE
            if group is None:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.members:
                code = ErrorCode.NON_EMPTY_GROUP
            else:
                del self.groups[name]
            results.append(delete_groups.DeletableGroupResult(group_id=name, error_code=code))
        return delete_groups.DeleteGroupsResponse(results=results)

    def _delete_offsets(
        self, context: Context, call: Call, request: offset_delete.OffsetDeleteRequest
    ) -> offset_delete.OffsetDeleteResponse:
        group = self.groups.get(request.group_id)
        if group is None:
            return offset_delete.OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        topics = []
        for topic in request.topics:
            code = (
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.reads(topic.name) else ErrorCode.NONE
            )
            parts = []
            for part in topic.partitions:
                if code is ErrorCode.NONE:
                    group.offsets.pop((topic.name, part.partition_index), None)
                parts.append(
                    offset_delete.OffsetDeleteResponsePartition(
                        partition_index=part.partition_index, error_code=code
                    )
                )
            topics.append(
                offset_delete.OffsetDeleteResponseTopic(name=topic.name, partitions=parts)
            )
        return offset_delete.OffsetDeleteResponse(topics=topics)


def _described(name: str, group: MadeUpGroup) -> describe_groups.DescribedGroup:
    return describe_groups.DescribedGroup(
        group_id=name,
        group_state=group.state,
        protocol_type="consumer",
        protocol_data="range" if group.members else "",
        members=[
            describe_groups.DescribedGroupMember(
                member_id=member.id,
                client_id=member.client_id,
                client_host=member.host,
                member_assignment=_assignment(member.assignment),
            )
            for member in group.members
        ],
    )


def _assigned(assignment: dict[str, list[int]]) -> consumer_group_describe.Assignment:
    return consumer_group_describe.Assignment(
        topic_partitions=[
            consumer_group_describe.TopicPartitions(topic_name=topic, partitions=indexes)
            for topic, indexes in assignment.items()
        ]
    )


def _assignment(assignment: dict[str, list[int]]) -> bytes:
    """Encodes an assignment of the consumer protocol, version 0, without user data."""
    parts = [pack(">hi", 0, len(assignment))]
    for topic, indexes in assignment.items():
        parts.append(pack(">h", len(topic)) + topic.encode())
        parts.append(pack(f">i{len(indexes)}i", len(indexes), *indexes))
    return b"".join(parts) + pack(">i", -1)


@contextmanager
def served(service: GroupService | None) -> Iterator[None]:
    """Lets brokers that start within the block serve these groups and no others, or none at all."""
    ours = GroupService().handlers() if service is None else service.handlers()
    taken = {module.SERVED.key for module in ours} | JOINING
    others = [module for module in HANDLERS if module.SERVED.key not in taken]
    with patch("tests.fakes.broker.HANDLERS", (*others, *(ours if service else ()))):
        yield
