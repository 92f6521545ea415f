"""Checks from which topics a consumer may read. Pure, except for refusals."""

from collections.abc import Iterable

from gateway.kafka.readers.admission import NothingReadable, Readable, admit, admit_by_pattern
from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.calls import Call
from gateway.rest.readers import reader_of


def require_topics(call: Call, topics: Iterable[str]) -> None:
    admit(reader_of(call.caller, call.cluster_id), sorted(set(topics)))


def readable(call: Call, pattern: TopicPattern) -> Readable:
    """Return the topics that a pattern may mean for a caller, who has to have some."""
    reader = reader_of(call.caller, call.cluster_id)
    try:
        return admit_by_pattern(reader).readable
    except NothingReadable:
        raise reader.refusal_of_pattern(f"topic_pattern {pattern.text!r}") from None
