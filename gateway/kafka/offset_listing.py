"""Reads committed offsets of groups in a way that survives a change of coordinator.

librdkafka 2.16 crashes with a segmentation fault if an admin client's OffsetFetch is answered with
NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE: it records that in the client's consumer group, which
only a consumer has. Python's admin client is none, so a consumer of our own, which joins no group,
makes the same call. To be removed once the library has a fix.
"""

import ctypes
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from confluent_kafka import KafkaError

from gateway.kafka.clients import Settings
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

CALL: Final = "ListConsumerGroupOffsets"
# Groups that are requested concurrently; the library needs one request for each.
WINDOW: Final = 100
# The offset of a partition without a commit.
NOT_COMMITTED: Final = -1
# A moving coordinator returns within a second or so, and a repeated read is harmless.
RETRY_S: Final = 0.1
MOVING: Final = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
)


def committed_offsets(connection: Connection, names: Sequence[str]) -> dict[str, dict[Place, int]]:
    """Return all committed offsets of groups, by group and place."""
    if any(not name or "\0" in name for name in names):
        raise failure("INVALID_REQUEST", "groups", "a group must be named")
    found: dict[str, dict[Place, int]] = {}
    deadline = connection.deadline()
    with ExitStack() as held:
        use: Settings = {"group.id": connection.client_id, "enable.auto.commit": False}
        client = client_of(connection, held, use, kind=ClientKind.CONSUMER)
        left = list(dict.fromkeys(names))
        while left:
            moving = _ask(client, left[:WINDOW], deadline, found)
            left = [*moving, *left[WINDOW:]]
            if moving:
                time.sleep(RETRY_S)
    return found


def _ask(
    client: Handle, names: Sequence[str], deadline: Deadline, found: dict[str, dict[Place, int]]
) -> list[str]:
    """Ask once, and return the groups that have to be asked for again."""
    lib, moving = library(), []
    with ExitStack() as held:
        queues = {}
        for name in names:
            queue = kept(held, lib["queue_new"](client), lib["queue_destroy"])
            request = kept(held, lib[f"{CALL}_new"](name.encode(), None), lib[f"{CALL}_destroy"])
            options = options_for(client, deadline.left(), f"group {name}", held)
            lib[CALL](client, ctypes.byref(POINTER(request)), 1, options, queue)
            queues[name] = queue
        for name, queue in queues.items():
            try:
                found[name] = _offsets(answer_of(queue, deadline, f"group {name}", held), name)
            except KafkaFailure as failed:
                # The last request needs enough time for its answer.
                if failed.name not in MOVING or deadline.left() < 2 * RETRY_S:
                    raise
                moving.append(name)
    return moving


def _offsets(event: Handle, name: str) -> dict[Place, int]:
    value, offsets = f"group {name}", {}
    for told in groups_of(event, CALL, value):
        for number in range(told.cnt):
            answer = told.elems[number]
            place = Place(topic=text(answer.topic), partition=answer.partition)
            if answer.err:
                raise translated(KafkaError(answer.err), f"{value}, {place}")
            if answer.offset > NOT_COMMITTED:
                offsets[place] = answer.offset
    return offsets
