"""confluent-kafka's admin client as a door of the table of groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.interop.clients.admin import SECONDS, Refused
from tests.interop.clients.group_calls import STATE_WORDS, Told
from tests.raw_groups import Place


class ConfluentGroups:
    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    def close(self) -> None:
        """Nothing to do: the client ends with its last reference."""

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> dict[str, Told]:
        wanted: dict[str, Any] = {}
        if states:
            wanted["states"] = {ConsumerGroupState[STATE_WORDS[each]] for each in states}
        if types:
            wanted["types"] = {ConsumerGroupType[each.upper()] for each in types}
        found = self._admin.list_consumer_groups(request_timeout=SECONDS, **wanted).result(SECONDS)
        assert not found.errors, found.errors
        return {
            each.group_id: {"state": each.state.name, "type": each.type.name.lower()}
            for each in found.valid
        }

    def describe_group(self, group: str) -> Told:
        told = _only(self._admin.describe_consumer_groups([group]))
        return {
            "state": told.state.name,
            "type": told.type.name.lower(),
            "assignor": told.partition_assignor,
            "members": [
                {
                    "instance": each.group_instance_id,
                    "host": each.host,
                    "reads": [
                        (place.topic, place.partition) for place in each.assignment.topic_partitions
                    ],
                }
                for each in told.members
            ],
        }

    def delete_groups(self, groups: Iterable[str]) -> dict[str, int]:
        futures = self._admin.delete_consumer_groups(list(groups))
        return {group: _code(future) for group, future in futures.items()}

    def list_offsets(self, group: str, places: Sequence[Place] | None = None) -> dict[Place, int]:
        asked = None if places is None else [TopicPartition(*place) for place in places]
        wanted = ConsumerGroupTopicPartitions(group, asked)
        found = _only(self._admin.list_consumer_group_offsets([wanted]))
        return {
            (each.topic, each.partition): each.offset
            for each in found.topic_partitions
            if each.offset >= 0
        }

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        asked = ConsumerGroupTopicPartitions(group, places)
        for each in _only(self._admin.alter_consumer_group_offsets([asked])).topic_partitions:
            if each.error is not None:
                raise Refused(each.error.code(), each.error.str())


def _code(future: Any) -> int:
    try:
        future.result(SECONDS)
    except KafkaException as error:
        return int(error.args[0].code())
    return 0


def _only(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    try:
        return future.result(SECONDS)
    except KafkaException as error:
        raise Refused(error.args[0].code(), error.args[0].str()) from error
