"""Kafka's own Java admin client as a door of the table of groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.interop.clients.admin_java import (
    ADMIN,
    COMMON,
    JavaDoor,
    error_of,
    got,
    listed,
    place_of,
)
from tests.interop.clients.group_calls import Told
from tests.oracles.java import gateway, java_class
from tests.raw_groups import Place

CONSUMER = "org.apache.kafka.clients.consumer"


class JavaGroups(JavaDoor):
    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> dict[str, Told]:
        options = java_class(f"{ADMIN}.ListGroupsOptions")()
        if states:
            options = options.inGroupStates(_set(f"{COMMON}.GroupState", states))
        if types:
            options = options.withTypes(_set(f"{COMMON}.GroupType", types))
        found = got(self._admin.listGroups(options).all())
        return {
            each.groupId(): {
                "state": each.groupState().get().name(),
                "type": each.type().get().toString().lower(),
                "protocol": each.protocol(),
            }
            for each in listed(found)
        }

    def describe_group(self, group: str) -> Told:
        told = got(self._admin.describeConsumerGroups([group]).all())[group]
        return {
            "state": told.groupState().name(),
            "type": told.type().toString().lower(),
            "assignor": told.partitionAssignor(),
            "members": [
                {
                    "instance": each.groupInstanceId().orElse(None),
                    "host": each.host(),
                    "reads": sorted(
                        (place.topic(), place.partition())
                        for place in listed(each.assignment().topicPartitions())
                    ),
                }
                for each in listed(told.members())
            ],
        }

    def delete_groups(self, groups: Iterable[str]) -> dict[str, int]:
        told = self._admin.deleteConsumerGroups(list(groups)).deletedGroups()
        return {group: _code(told[group]) for group in groups}

    def list_offsets(self, group: str, places: Sequence[Place] | None = None) -> dict[Place, int]:
        spec = java_class(f"{ADMIN}.ListConsumerGroupOffsetsSpec")()
        if places is not None:
            spec = spec.topicPartitions([place_of(*place) for place in places])
        told = self._admin.listConsumerGroupOffsets({group: spec})
        found = got(told.partitionsToOffsetAndMetadata(group))
        return {
            (place.topic(), place.partition()): each.offset()
            for place, each in found.items()
            if each is not None
        }

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        made = java_class(f"{CONSUMER}.OffsetAndMetadata")
        long = gateway().jvm.java.lang.Long
        wanted = {
            place_of(*place): made(long.valueOf(str(offset))) for place, offset in offsets.items()
        }
        got(self._admin.alterConsumerGroupOffsets(group, wanted).all())

    def delete_offsets(self, group: str, places: Sequence[Place]) -> None:
        wanted = gateway().jvm.java.util.HashSet()
        for place in places:
            wanted.add(place_of(*place))
        got(self._admin.deleteConsumerGroupOffsets(group, wanted).all())

    def remove_static(self, group: str, instance: str) -> None:
        member = java_class(f"{ADMIN}.MemberToRemove")(instance)
        options = java_class(f"{ADMIN}.RemoveMembersFromConsumerGroupOptions")([member])
        got(self._admin.removeMembersFromConsumerGroup(group, options).memberResult(member))

    def remove_all(self, group: str) -> None:
        options = java_class(f"{ADMIN}.RemoveMembersFromConsumerGroupOptions")()
        got(self._admin.removeMembersFromConsumerGroup(group, options).all())

    def features(self) -> dict[str, Any]:
        told = got(self._admin.describeFeatures().featureMetadata())
        supported, finalized = told.supportedFeatures(), told.finalizedFeatures()
        return {
            name: (
                (supported[name].minVersion(), supported[name].maxVersion()),
                (levels.minVersionLevel(), levels.maxVersionLevel()),
            )
            for name, levels in finalized.items()
        }


def _code(future: Any) -> int:
    try:
        future.get()
    except Py4JJavaError as error:
        return error_of(error).code
    return 0


def _set(name: str, words: Sequence[str]) -> Any:
    made = gateway().jvm.java.util.HashSet()
    for word in words:
        made.add(java_class(name).parse(word))
    return made
