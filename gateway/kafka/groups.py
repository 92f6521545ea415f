"""Consumer groups of a cluster: which there are, who is in them, what they have committed.

Joins no group. Every call has the connection's deadline and fails as `KafkaFailure`. A group that
does not exist has no offsets, which is no failure; whoever needs to know describes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    Node,
    TopicPartition,
)
from confluent_kafka.admin import (
    ConsumerGroupDescription,
    ListConsumerGroupsResult,
    MemberAssignment,
    MemberDescription,
)

from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure, from_exception, translated
from gateway.kafka.group_overview import overview, refined
from gateway.kafka.offset_deletion import delete_offsets
from gateway.kafka.offset_listing import committed_offsets
from gateway.kafka.values import (
    Broker,
    Group,
    GroupState,
    GroupSummary,
    GroupType,
    Member,
    Place,
)

# The library types a state of a group as any enumeration.
STATES: Final[Mapping[Enum, GroupState]] = {
    ConsumerGroupState.PREPARING_REBALANCING: GroupState.PREPARING_REBALANCE,
    ConsumerGroupState.COMPLETING_REBALANCING: GroupState.COMPLETING_REBALANCE,
    ConsumerGroupState.STABLE: GroupState.STABLE,
    ConsumerGroupState.EMPTY: GroupState.EMPTY,
    ConsumerGroupState.DEAD: GroupState.DEAD,
}
TYPES: Final[Mapping[Enum, GroupType]] = {
    ConsumerGroupType.CLASSIC: GroupType.CLASSIC,
    ConsumerGroupType.CONSUMER: GroupType.CONSUMER,
}


class Groups:
    """One connection for questions about groups, and changes. For one thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls = AdminCalls(connection)
        self._is_served = False

    def summaries(
        self, *, states: Iterable[GroupState] = (), types: Iterable[GroupType] = ()
    ) -> list[GroupSummary]:
        """Return all groups, or those in some states or of some types, by name."""
        wanted = {state for state, ours in STATES.items() if ours in set(states)}
        listed = self._listed(wanted, {kind for kind, ours in TYPES.items() if ours in set(types)})
        for error in listed.errors or []:
            # A list without the groups of one broker would pass for all of them.
            raise from_exception(_raised(error), self._connection.bootstrap)
        return sorted(
            (
                GroupSummary(
                    name=found.group_id,
                    state=STATES.get(found.state, GroupState.UNKNOWN),
                    type=TYPES.get(found.type, GroupType.UNKNOWN),
                    is_simple=found.is_simple_consumer_group,
                )
                for found in listed.valid or []
            ),
            key=lambda summary: summary.name,
        )

    def describe(self, names: Iterable[str]) -> list[Group]:
        """Return groups in the order asked for; the first that is missing is the failure."""
        self._require_service()
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return []

        def ask(deadline: Deadline) -> list[ConsumerGroupDescription]:
            futures = self._calls.send(
                lambda: self._calls.client.describe_consumer_groups(
                    wanted, request_timeout=deadline.left()
                )
            )
            return [
                self._calls.wait(future, deadline, f"group {name}")
                for name, future in futures.items()
            ]

        found = self._calls.read(ask)
        return [_group(name, group) for name, group in zip(wanted, found, strict=True)]

    def find(self, names: Iterable[str]) -> dict[str, Group]:
        """Return those groups that exist, by name."""
        self._require_service()
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}

        def ask(deadline: Deadline) -> dict[str, Group]:
            futures = self._calls.send(
                lambda: self._calls.client.describe_consumer_groups(
                    wanted, request_timeout=deadline.left()
                )
            )
            found = {}
            for name, future in futures.items():
                try:
                    found[name] = _group(name, self._calls.wait(future, deadline, f"group {name}"))
                except KafkaFailure as failed:
                    if failed.name != "GROUP_ID_NOT_FOUND":
                        raise
            return found

        return self._calls.read(ask)

    def overview(self, wanted: Sequence[GroupSummary], brokers: Iterable[Broker]) -> list[Group]:
        """Return those groups that still exist, in the order asked for; most without members."""
        found = overview(self._connection, brokers, wanted)
        missing = [summary.name for summary in wanted if summary.name not in found]
        found |= self.find(missing)
        return [found[summary.name] for summary in wanted if summary.name in found]

    def refined(self, group: Group, brokers: Iterable[Broker]) -> Group:
        """Return a group with its true state, and whether its members speak two protocols."""
        if group.type is GroupType.CONSUMER:
            for broker in brokers:
                if broker.id == group.coordinator:
                    return refined(self._connection, broker, group)
        return group

    def offsets(self, names: Iterable[str]) -> dict[str, dict[Place, int]]:
        """Return all that groups have committed: by group, by place."""
        self._require_service()
        return committed_offsets(self._connection, list(names))

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """Set what a group has committed; the first partition that is refused is the failure."""
        for refused in self.commit_each(name, offsets).values():
            raise refused

    def commit_each(self, name: str, offsets: Mapping[Place, int]) -> dict[Place, KafkaFailure]:
        """Set what a group without members has committed; return what was refused.

        Creates a group that does not exist.
        """
        self._require_service()
        places = [
            TopicPartition(place.topic, place.partition, offset)
            for place, offset in sorted(offsets.items())
        ]
        value = f"group {name}"
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(name, places)], request_timeout=deadline.left()
            ),
            value,
        )
        [future] = futures.values()
        done = self._calls.wait(future, deadline, value).topic_partitions or []
        return {
            (at := _place(place)): translated(place.error, f"{value}, {at}")
            for place in done
            if place.error is not None
        }

    def delete(self, names: Sequence[str]) -> None:
        """Delete groups without members, with all that they have committed."""
        self._require_service()
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.delete_consumer_groups(
                list(dict.fromkeys(names)), request_timeout=deadline.left()
            )
        )
        for name, future in futures.items():
            self._calls.wait(future, deadline, f"group {name}")

    def delete_offsets(self, name: str, places: Iterable[Place]) -> None:
        """Delete what is committed for places; the first that is refused is the failure."""
        for refused in self.delete_offsets_each(name, places).values():
            raise refused

    def delete_offsets_each(self, name: str, places: Iterable[Place]) -> dict[Place, KafkaFailure]:
        """Delete what is committed for places of topics that no member reads; return refusals."""
        self._require_service()
        return delete_offsets(self._connection, name, sorted(set(places)))

    def _listed(self, states: set[Enum], types: set[Enum]) -> ListConsumerGroupsResult:
        # Filters that are empty stand for no filter, and are refused by brokers that know none.
        filters: dict[str, Any] = {}
        if states:
            filters["states"] = states
        if types:
            filters["types"] = types

        def ask(deadline: Deadline) -> ListConsumerGroupsResult:
            future = self._calls.send(
                lambda: self._calls.client.list_consumer_groups(
                    request_timeout=deadline.left(), **filters
                )
            )
            # Typed as a future of anything.
            listed: ListConsumerGroupsResult = self._calls.wait(
                future, deadline, self._connection.bootstrap
            )
            return listed

        listed = self._calls.read(ask)
        for error in listed.errors or []:
            told = from_exception(_raised(error), self._connection.bootstrap)
            if told.name == "UNSUPPORTED_VERSION" and not types:
                words = "the brokers serve no consumer groups"
                raise failure(told.name, self._connection.bootstrap, words)
        return listed

    def _require_service(self) -> None:
        """Fail at once where groups are not served.

        The library would wait for the coordinator of a group until the deadline, and call that a
        timeout. It tells of a list that it cannot ask for; dead groups make the shortest one.
        """
        if self._is_served:
            return
        self._listed({ConsumerGroupState.DEAD}, set())
        self._is_served = True


def _raised(error: object) -> KafkaException:
    """Return an error as an exception; the library is typed as if it always were one."""
    return error if isinstance(error, KafkaException) else KafkaException(error)


def _group(name: str, found: ConsumerGroupDescription) -> Group:
    state = STATES.get(found.state, GroupState.UNKNOWN)
    if state is GroupState.DEAD:
        # What a broker calls a group that does not exist, where it has no error for that.
        raise failure("GROUP_ID_NOT_FOUND", f"group {name}", "there is no such group")
    # Typed as if there always were one.
    coordinator: Node | None = found.coordinator
    return Group(
        name=name,
        state=state,
        type=TYPES.get(found.type, GroupType.UNKNOWN),
        assignor=found.partition_assignor or "",
        coordinator=None if coordinator is None else coordinator.id,
        members=tuple(
            sorted((_member(member) for member in found.members), key=lambda member: member.id)
        ),
    )


def _member(found: MemberDescription) -> Member:
    target: MemberAssignment | None = found.target_assignment
    return Member(
        id=found.member_id,
        client_id=found.client_id,
        host=found.host,
        instance_id=found.group_instance_id or None,
        assignment=_places(found.assignment),
        target=None if target is None else _places(target),
    )


def _places(assignment: MemberAssignment | None) -> tuple[Place, ...]:
    return () if assignment is None else tuple(sorted(map(_place, assignment.topic_partitions)))


def _place(found: TopicPartition) -> Place:
    return Place(topic=found.topic, partition=found.partition)
