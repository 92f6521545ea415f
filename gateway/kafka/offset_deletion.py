"""Deletes committed offsets, by the one call of librdkafka that its Python package lacks.

Calls the library inside the package, with a client of its own. To be removed once `AdminClient` has
the call.
"""

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from confluent_kafka import KafkaError

from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure, translated
from gateway.kafka.librdkafka import (
    POINTER,
    ClientKind,
    Handle,
    answer_of,
    client_of,
    groups_of,
    kept,
    library,
    options_for,
    text,
)
from gateway.kafka.values import Place

CALL: Final = "DeleteConsumerGroupOffsets"
# Far above the partitions of one topic; no person requests a longer list.
MAX_PLACES: Final = 100_000


def delete_offsets(
    connection: Connection, group: str, places: Sequence[Place]
) -> dict[Place, KafkaFailure]:
    """Delete a group's committed offsets of places; return the refused ones."""
    value = f"group {group}"
    if len(places) > MAX_PLACES:
        words = f"{len(places)} partitions are named, {MAX_PLACES} may be at once"
        raise failure("INVALID_REQUEST", value, words)
    names = {group, *(place.topic for place in places)}
    if not places or any(not name or "\0" in name for name in names):
        raise failure("INVALID_REQUEST", value, "a group and partitions must be named")
    lib, refused = library(), dict[Place, KafkaFailure]()
    deadline = connection.deadline()
    with ExitStack() as held:
        client = client_of(connection, held, {}, kind=ClientKind.PRODUCER)
        queue = kept(held, lib["queue_new"](client), lib["queue_destroy"])
        _send(client, queue, deadline, group, places)
        event = answer_of(queue, deadline, value, held)
        for told in groups_of(event, CALL, value):
            for number in range(told.cnt):
                answer = told.elems[number]
                if answer.err:
                    place = Place(topic=text(answer.topic), partition=answer.partition)
                    refused[place] = translated(KafkaError(answer.err), f"{value}, {place}")
    return refused


def _send(
    client: Handle, queue: Handle, deadline: Deadline, group: str, places: Sequence[Place]
) -> None:
    lib = library()
    # The library copies all arguments before it returns.
    with ExitStack() as held:
        named = kept(
            held,
            lib["topic_partition_list_new"](len(places)),
            lib["topic_partition_list_destroy"],
        )
        for place in places:
            lib["topic_partition_list_add"](named, place.topic.encode(), place.partition)
        request = kept(held, lib[f"{CALL}_new"](group.encode(), named), lib[f"{CALL}_destroy"])
        options = options_for(client, deadline.left(), f"group {group}", held)
        lib[CALL](client, ctypes.byref(POINTER(request)), 1, options, queue)
