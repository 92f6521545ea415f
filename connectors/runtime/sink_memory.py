"""What the process of a sink task remembers between slices, with the ids of its topics.

Pure. Offsets belong to one topic id; a recreated topic has other offsets.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from connectors.sdk.records import TopicPartition

# By partition: the offset up to which it was flushed and committed, and the offset after the
# records skipped behind the last one that the task received.
FLUSHED: Final = "flushed"
LEFT_OUT: Final = "left out"
IDS: Final = "topic ids"

Offsets = Mapping[TopicPartition, int]


def forget_former_topics(memory: MutableMapping[str, Any], ids: Mapping[str, str]) -> Offsets:
    """Forget partitions of recreated topics; return their flushed offsets."""
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
