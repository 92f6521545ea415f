"""kafkajs' admin client as a door of the table of groups, by the program that admin calls have."""

from collections.abc import Iterable, Mapping, Sequence

from tests.interop.clients.admin_kafkajs import KafkaJsDoor
from tests.interop.clients.group_calls import Told
from tests.raw_groups import Place


class KafkaJsGroups(KafkaJsDoor):
    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> dict[str, Told]:
        assert not states, "kafkajs asks for all states"
        assert not types, "kafkajs asks for all types"
        return dict(self._call("list_groups"))

    def describe_group(self, group: str) -> Told:
        told: Told = self._call("describe_group", group=group)
        for member in told["members"]:
            member["reads"] = [tuple(place) for place in member["reads"]]
        return told

    def delete_groups(self, groups: Iterable[str]) -> dict[str, int]:
        return dict(self._call("delete_groups", groups=list(groups)))

    def list_offsets(self, group: str, places: Sequence[Place] | None = None) -> dict[Place, int]:
        topics = [] if places is None else sorted({topic for topic, _ in places})
        found = self._call("list_group_offsets", group=group, topics=topics)
        offsets = {(topic, index): int(offset) for topic, index, offset in found}
        wanted = offsets if places is None else {place: offsets[place] for place in places}
        return {place: offset for place, offset in wanted.items() if offset >= 0}

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        ((topic, index),) = offsets
        self._call(
            "alter_group_offsets",
            group=group,
            topic=topic,
            partitions=[{"partition": index, "offset": str(offsets[topic, index])}],
        )
