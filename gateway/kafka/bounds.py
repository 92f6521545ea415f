"""Looks up the bounds of many partitions, and the offsets of a time in them, at once.

Each leader is asked once for all of its partitions. A partition without an answer is left out, so
that it does not hide the others.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.connection import Deadline
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.values import Place

BEGINNING: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
END: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
# The library searches the whole list for each partition of an answer: 5,000 at once take a second
# or two, and in portions a tenth of that.
AT_ONCE: Final = 250


def bounds(calls: AdminCalls, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    """Return the first offset and the end of each place with an available leader."""
    asked = sorted(places)
    first = _look_up(calls, asked, BEGINNING)
    end = _look_up(calls, asked, END)
    return {place: (first[place], end[place]) for place in asked if place in first and place in end}


def at_time(calls: AdminCalls, places: Iterable[Place], ms: int) -> dict[Place, int | None]:
    """Return the first offset at or after a time; None if there is no such record yet."""
    found = _look_up(calls, sorted(places), OffsetSpec.for_timestamp(ms))
    return {place: None if offset < 0 else offset for place, offset in found.items()}


def _look_up(calls: AdminCalls, places: Sequence[Place], spec: OffsetSpec) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for begin in range(0, len(places), AT_ONCE):
        some = places[begin : begin + AT_ONCE]
        found |= calls.read(partial(_list_offsets, calls, some, spec))
    return found


def _list_offsets(
    calls: AdminCalls, places: Sequence[Place], spec: OffsetSpec, deadline: Deadline
) -> dict[Place, int]:
    futures = calls.send(
        lambda: calls.client.list_offsets(
            {TopicPartition(place.topic, place.partition): spec for place in places},
            request_timeout=deadline.left(),
        )
    )
    found = {}
    for asked, future in futures.items():
        place = Place(topic=asked.topic, partition=asked.partition)
        try:
            found[place] = calls.wait(future, deadline, str(place)).offset
        except KafkaFailure as failed:
            # One partition without a leader, or deleted, must not hide the others.
            if failed.name == "BROKER_NOT_AVAILABLE" or failed.kind is Kind.USAGE:
                raise
    return found
