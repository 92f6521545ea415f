"""What a sink has left out behind the last record that its target knows, kept for other workers.

Pure. A target that keeps its own offsets knows nothing of records that became dead letters. The
process of a task remembers them; without these notes another one, or one with a changed config,
would read them once more: buried twice, or written beside the letters that are sent again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from connectors.runtime.ports import Offsets
from connectors.sdk.records import Place, TopicPartition

# Partition → behind the last record that the target knows, and behind what was left out after it.
LeftOut: TypeAlias = Mapping[TopicPartition, tuple[int, int]]

# A note that holds for no offset.
VOID: Final[Mapping[str, Any]] = {"given": -1, "next": -1}


class LeftOutNotes:
    """Of one slice. `topic_ids` are those of the topics as they are now."""

    def __init__(self, offsets: Offsets, topic_ids: Mapping[str, str], *, is_kept: bool) -> None:
        self._offsets = offsets
        self._topic_ids = topic_ids
        # Whether the target keeps offsets; where it does not, those of the group say it all.
        self._is_kept = is_kept
        self._stored: dict[TopicPartition, tuple[int, int]] = {}

    def read(
        self, places: Iterable[TopicPartition], given: Mapping[TopicPartition, int]
    ) -> LeftOut:
        """Return the notes that hold where the target stands as they say; void the others.

        A target that was set back, and comes by the same offset again, has left nothing out there.
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
        """Note what dead letters were made of, behind what the target knows."""
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
