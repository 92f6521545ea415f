"""Reads and changes consumer groups of a cluster: their state, members and offsets.

Joins no group. Every call has the connection's deadline and fails as `KafkaFailure`. A missing
group has no offsets, which is no failure; describe it to find out whether it exists.
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

# The stubs declare the state of a group as any Enum.
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
    """An admin connection for groups. Not thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls = AdminCalls(connection)
        self._is_served = False

    def summaries(
        self, *, states: Iterable[GroupState] = (), types: Iterable[GroupType] = ()
    ) -> list[GroupSummary]:
        """Return all groups, or those in given states or of given types, by name."""
        wanted = {state for state, ours in STATES.items() if ours in set(states)}
        listed = self._listed(wanted, {kind for kind, ours in TYPES.items() if ours in set(types)})
        for error in listed.errors or []:
            # A list without the groups of one broker would pass for a complete one.
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
        """Return groups in the requested order; raise for the first missing one."""
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
        """Return the existing ones of these groups, by name."""
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
        """Return the existing ones of these groups, in the given order; most without members."""
        from gateway.kafka.group_overview import overview  # noqa: PLC0415 - loads the codec

        found = overview(self._connection, brokers, wanted)
        missing = [summary.name for summary in wanted if summary.name not in found]
        found |= self.find(missing)
        return [found[summary.name] for summary in wanted if summary.name in found]

    def refine(self, group: Group, brokers: Iterable[Broker]) -> Group:
        """Return a group with its exact state, and whether its members use two protocols."""
        if group.type is GroupType.CONSUMER:
            for broker in brokers:
                if broker.id == group.coordinator:
                    from gateway.kafka.group_overview import refine  # noqa: PLC0415 - as above

                    return refine(self._connection, broker, group)
        return group

    def offsets(self, names: Iterable[str]) -> dict[str, dict[Place, int]]:
        """Return all committed offsets of groups, by group and place."""
        self._require_service()
        return committed_offsets(self._connection, list(names))

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """Set committed offsets of a group; raise the first refusal of a partition."""
        for refused in self.commit_each(name, offsets).values():
            raise refused

    def commit_each(self, name: str, offsets: Mapping[Place, int]) -> dict[Place, KafkaFailure]:
        """Set committed offsets of a group without members; return the refusals.

        Creates a missing group.
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
        """Delete groups without members, with all their committed offsets."""
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
        """Delete committed offsets of places; raise the first refusal."""
        for refused in self.delete_offsets_each(name, places).values():
            raise refused

    def delete_offsets_each(self, name: str, places: Iterable[Place]) -> dict[Place, KafkaFailure]:
        """Delete committed offsets of places in topics that no member reads; return refusals."""
        self._require_service()
        return delete_offsets(self._connection, name, sorted(set(places)))

    def _listed(self, states: set[Enum], types: set[Enum]) -> ListConsumerGroupsResult:
        # Brokers without support for filters refuse even empty ones, which mean no filter.
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
            # The stubs declare a future of Any.
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
        """Raise at once if the brokers serve no groups.

        The library would wait for a coordinator until the deadline and report a timeout. It does
        report an unsupported list request; the list of dead groups is the shortest one.
        """
        if self._is_served:
            return
        self._listed({ConsumerGroupState.DEAD}, set())
        self._is_served = True


def _raised(error: object) -> KafkaException:
    """Return an error as an exception; the stubs declare it as always being one."""
    return error if isinstance(error, KafkaException) else KafkaException(error)


def _group(name: str, found: ConsumerGroupDescription) -> Group:
    state = STATES.get(found.state, GroupState.UNKNOWN)
    if state is GroupState.DEAD:
        # Brokers without an error for a missing group report this state instead.
        raise failure("GROUP_ID_NOT_FOUND", f"group {name}", "there is no such group")
    # The stubs declare it as always present.
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
