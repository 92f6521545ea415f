"""Which partitions a task of a sink reads.

Pure: topics are told. The same partitions go to the same task in every slice, as long as neither
topics nor the number of tasks change.
"""

from collections.abc import Mapping
from typing import Final

import re2  # type: ignore[import-untyped]

from connectors.runtime.task_settings import Reading
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import TopicPartition

# Topics that Kafka keeps for itself match no pattern.
INTERNAL: Final = "__"
# What a pattern may take of memory; those of people take a hundredth.
PATTERN_BYTES: Final = 1_000_000


def wanted(reading: Reading, topics: Mapping[str, int]) -> list[TopicPartition]:
    """Return all partitions that a connector reads, in their order."""
    names = [name for name in reading.topics if name in topics]
    if reading.pattern:
        matches = compiled(reading.pattern).fullmatch
        names = [name for name in topics if not name.startswith(INTERNAL) and matches(name)]
    return sorted(
        TopicPartition(topic=name, partition=number)
        for name in set(names)
        for number in range(topics[name])
    )


def share(places: list[TopicPartition], *, number: int, count: int) -> list[TopicPartition]:
    """Return those of one task, as even as they come: the first tasks have one more."""
    size, left = divmod(len(places), count)
    begin = number * size + min(number, left)
    return places[begin : begin + size + (number < left)]


def compiled(pattern: str) -> re2._Regexp:
    """Return a pattern whose time is linear; ConfigError where it is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ConfigError(
            f"Invalid value {pattern} for configuration topics.regex: {error}"
        ) from None
