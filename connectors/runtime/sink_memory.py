"""What the process of a task of a sink remembers between slices, and of which topics that is.

Pure. Offsets are those of a topic, and a topic that is made again under its name has others.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from connectors.sdk.records import TopicPartition

# By partition: the offset up to which it was flushed and committed, and how far records were left
# out behind the last one that the task was given.
FLUSHED: Final = "flushed"
LEFT_OUT: Final = "left out"
IDS: Final = "topic ids"

Offsets = Mapping[TopicPartition, int]


def forget_former_topics(memory: MutableMapping[str, Any], ids: Mapping[str, str]) -> Offsets:
    """Forget partitions of topics that have another id by now; return where they were flushed."""
    known: Mapping[str, str] = memory.get(IDS, {})
    former = {name for name, one in ids.items() if known.get(name, one) != one}
    memory[IDS] = {**known, **ids}
    flushed: Offsets = memory.get(FLUSHED, {})
    for name in (FLUSHED, LEFT_OUT):
        if name in memory:
            memory[name] = {
                place: offset for place, offset in memory[name].items() if place.topic not in former
            }
    return {place: offset for place, offset in flushed.items() if place.topic in former}
