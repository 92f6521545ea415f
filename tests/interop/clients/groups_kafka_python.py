"""kafka-python's admin client as a door of the table of groups."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import MemberToRemove
from kafka.structs import OffsetAndMetadata

from tests.interop.clients.admin import Refused
from tests.interop.clients.admin_kafka_python import refusals
from tests.interop.clients.group_calls import Told
from tests.raw_groups import Place

ERROR = re.compile(r"\[Error (\d+)\]")


class KafkaPythonGroups:
    def __init__(self, bootstrap: str) -> None:
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def close(self) -> None:
        self._admin.close()

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> dict[str, Told]:
        with refusals():
            found = self._admin.list_groups(
                states_filter=list(states) or None, types_filter=list(types) or None
            )
        return {
            each["group_id"]: {
                "state": each["group_state"].upper(),
                "type": each["group_type"],
                "protocol": each["protocol_type"],
            }
            for each in found
        }

    def describe_group(self, group: str) -> Told:
        with refusals():
            told = self._admin.describe_groups([group])[group]
        # It hands a refusal back in words.
        if told["error"] is not None:
            found = ERROR.match(told["error"])
            assert found is not None, told
            raise Refused(int(found[1]), told["error"])
        return {
            "state": told["group_state"].upper(),
            "protocol": told["protocol_type"],
            "assignor": told["protocol_data"],
            "members": [
                {
                    "instance": each["group_instance_id"],
                    "host": each["client_host"],
                    "reads": [
                        (topic["topic"], index)
                        for topic in each["member_assignment"]["assigned_partitions"]
                        for index in topic["partitions"]
                    ],
                }
                for each in told["members"]
            ],
        }

    def delete_groups(self, groups: Iterable[str]) -> dict[str, int]:
        with refusals():
            told = self._admin.delete_groups(list(groups))
        return {
            group: 0 if words == "OK" else getattr(kafka.errors, words).errno
            for group, words in told.items()
        }

    def list_offsets(self, group: str, places: Sequence[Place] | None = None) -> dict[Place, int]:
        asked = None if places is None else [TopicPartition(*place) for place in places]
        with refusals():
            found = self._admin.list_group_offsets({group: asked})[group]
        return {tuple(place): each.offset for place, each in found.items() if each.offset >= 0}

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        wanted = {
            TopicPartition(*place): OffsetAndMetadata(offset, "", None)
            for place, offset in offsets.items()
        }
        with refusals():
            _check(self._admin.alter_group_offsets(group, wanted))

    def delete_offsets(self, group: str, places: Sequence[Place]) -> None:
        with refusals():
            _check(
                self._admin.delete_group_offsets(group, [TopicPartition(*each) for each in places])
            )

    def remove_static(self, group: str, instance: str) -> None:
        self._remove(group, [MemberToRemove(group_instance_id=instance)])

    def remove_all(self, group: str) -> None:
        with refusals():
            told = self._admin.describe_groups([group])[group]
        self._remove(group, [MemberToRemove(each["member_id"]) for each in told["members"]])

    def _remove(self, group: str, members: Sequence[MemberToRemove]) -> None:
        with refusals():
            _check(self._admin.remove_group_members(group, members))

    def features(self) -> dict[str, Any]:
        told = self._admin.describe_features()
        return {name: (each["supported"], each["finalized"]) for name, each in told.items()}


def _check(told: Mapping[Any, type[kafka.errors.KafkaError]]) -> None:
    for error in told.values():
        if error is not kafka.errors.NoError:
            raise Refused(error.errno, error.__name__)
