"""aiokafka's admin client as a door of the table of groups."""

from collections.abc import Sequence
from typing import Any

from aiokafka import TopicPartition
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from tests.interop.clients.admin import Refused
from tests.interop.clients.admin_aio import AioDoor
from tests.interop.clients.group_calls import Told
from tests.raw_groups import Place


class AioGroups(AioDoor):
    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> dict[str, Told]:
        assert not states, "aiokafka asks for all states"
        assert not types, "aiokafka asks for all types"
        found = self._run(self._admin.list_consumer_groups())
        return {group: {"protocol": protocol} for group, protocol, *_ in found}

    def describe_group(self, group: str) -> Told:
        (response,) = self._run(self._admin.describe_consumer_groups([group]))
        (told,) = response.groups
        code, _group, state, protocol, assignor, members = told[:6]
        if code:
            raise Refused(code)
        return {
            "state": state.upper(),
            "protocol": protocol,
            "assignor": assignor,
            "members": [
                {"host": each[2] if len(each) == 5 else each[3], "reads": _reads(each[-1])}
                for each in members
            ],
        }

    def list_offsets(self, group: str, places: Sequence[Place] | None = None) -> dict[Place, int]:
        asked = None if places is None else [TopicPartition(*place) for place in places]
        found = self._run(self._admin.list_consumer_group_offsets(group, partitions=asked))
        return {tuple(place): each.offset for place, each in found.items() if each.offset >= 0}


def _reads(assignment: bytes) -> list[Any]:
    decoded = ConsumerProtocolMemberAssignment.decode(assignment)
    return [(topic, index) for topic, indexes in decoded.assignment for index in indexes]
