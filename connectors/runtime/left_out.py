"""Notes on records that a sink skipped after the last one its target knows, for other workers.

Pure. A target that keeps its own offsets does not know of records that became dead letters. The
process of a task remembers them. Without these notes, another process, or one with a changed
config, would read them again: they would become dead letters twice, or be written twice if the
letters are sent again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from connectors.runtime.ports import Offsets
from connectors.sdk.records import Place, TopicPartition

# Partition → the offset after the last record that the target knows, and after the skipped ones.
LeftOut: TypeAlias = Mapping[TopicPartition, tuple[int, int]]

# A note that matches no offset.
VOID: Final[Mapping[str, Any]] = {"given": -1, "next": -1}


class LeftOutNotes:
    """The notes of one slice. `topic_ids` are the current ones."""

    def __init__(self, offsets: Offsets, topic_ids: Mapping[str, str], *, is_kept: bool) -> None:
        self._offsets = offsets
        self._topic_ids = topic_ids
        # Whether the target keeps offsets; if not, the group's offsets suffice.
        self._is_kept = is_kept
        self._stored: dict[TopicPartition, tuple[int, int]] = {}

    def read(
        self, places: Iterable[TopicPartition], given: Mapping[TopicPartition, int]
    ) -> LeftOut:
        """Return the notes that match the target's offsets; void the others.

        If a target is set back and passes the same offset again, it has skipped nothing there.
        """
        void = []
        for place in places if self._is_kept else ():
            told = self._offsets.read(_key(place))
            if told is None or told["given"] == VOID["given"]:
                continue
            is_same = told.get("topic") == self._topic_ids.get(place.topic, "")
            if is_same and told["given"] == given.get(place):
                self._stored[place] = (told["given"], told["next"])
            else:
                void.append((_key(place), VOID))
        if void:
            self._offsets.store(void)
        return dict(self._stored)

    def write(self, left_out: LeftOut) -> None:
        """Note the records that became dead letters after the target's offset."""
        new = {place: pair for place, pair in left_out.items() if self._stored.get(place) != pair}
        if not new or not self._is_kept:
            return
        self._offsets.store(
            [
                (
                    _key(place),
                    {"given": first, "next": end, "topic": self._topic_ids.get(place.topic, "")},
                )
                for place, (first, end) in new.items()
            ]
        )
        self._stored |= new


def _key(place: TopicPartition) -> Place:
    return {"left out of": place.topic, "partition": place.partition}
