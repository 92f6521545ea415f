"""Assigns partitions to the tasks of a sink.

Pure: the caller passes the topics. Each task gets the same partitions in every slice, as long as
neither the topics nor the number of tasks change.
"""

import re
from collections.abc import Mapping
from typing import Final

import re2  # type: ignore[import-untyped]

from connectors.runtime import retry_topic
from connectors.runtime.task_settings import Reading
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import TopicPartition
from gateway.kafka.values import Record

# Kafka's internal topics match no pattern.
INTERNAL: Final = "__"
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# The memory limit of a pattern; usual ones take a hundredth of it.
PATTERN_BYTES: Final = 1_000_000


def wanted(reading: Reading, topics: Mapping[str, int]) -> list[TopicPartition]:
    """Return all partitions of a connector's topics, in order, except its retry topic.

    Raises ConfigError if the config names any connector's retry topic, whose records have another
    form. A pattern never matches one.
    """
    for name in reading.topics:
        if retry_topic.is_retry_topic(name):
            raise ConfigError(
                f"{name} has the name of a retry topic, which only its connector reads: take it"
                " out of topics"
            )
    names = [name for name in reading.topics if name in topics]
    if reading.pattern:
        matches = compiled(reading.pattern).fullmatch
        names = [name for name in topics if _may_match(name) and matches(name)]
    return sorted(
        TopicPartition(topic=name, partition=number)
        for name in set(names)
        for number in range(topics[name])
    )


def of_retries(connector: str, topics: Mapping[str, int]) -> list[TopicPartition]:
    """Return the partitions of a connector's retry topic; none before the first redrive."""
    name = retry_topic.name_for(connector)
    return [TopicPartition(topic=name, partition=number) for number in range(topics.get(name, 0))]


def has_topic(reading: Reading, topic: str) -> bool:
    """Return whether a connector reads a topic, whether or not it exists."""
    if reading.pattern:
        is_matched = compiled(reading.pattern).fullmatch(topic)
        return _may_match(topic) and _LEGAL.fullmatch(topic) is not None and bool(is_matched)
    return topic in reading.topics


def origin_within(reading: Reading, record: Record) -> retry_topic.Origin:
    """Return the first place of a record. Raises DataError unless the connector reads it."""
    origin = retry_topic.origin_of(record)
    if not has_topic(reading, origin.topic):
        raise DataError(
            f"it was first read from topic {origin.topic[: retry_topic.MAX_TOPIC_CHARS]}, which the"
            " connector does not read: add that topic to the config, or leave the record"
        )
    return origin


def _may_match(topic: str) -> bool:
    return not topic.startswith(INTERNAL) and not retry_topic.is_retry_topic(topic)


def share(places: list[TopicPartition], *, number: int, count: int) -> list[TopicPartition]:
    """Return the partitions of one task, evenly divided: the first tasks may have one more."""
    size, left = divmod(len(places), count)
    begin = number * size + min(number, left)
    return places[begin : begin + size + (number < left)]


def compiled(pattern: str) -> re2._Regexp:
    """Compile a pattern that matches in linear time; ConfigError if it is invalid."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ConfigError(
            f"Invalid value {pattern} for configuration topics.regex: {error}"
        ) from None
