"""Deletion of committed offsets: the one call of librdkafka that its Python package lacks.

Calls the library that the package carries, through ctypes, with an instance of its own. Goes as
soon as `AdminClient` has the call.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, cimpl

from gateway.kafka.connection import LOOK_S, Connection, Reach
from gateway.kafka.errors import failure, translated
from gateway.kafka.values import Place

T = TypeVar("T")
# What the library makes is a number to us.
Handle = int

PRODUCER: Final = 0
ANY_OPERATION: Final = 0
ERROR_BYTES: Final = 512
# Far above the partitions of one topic; a list beyond that is no request of a person.
MAX_PLACES: Final = 100_000

POINTER: Final = ctypes.c_void_p
INT: Final = ctypes.c_int
SIZE: Final = ctypes.c_size_t
TEXT: Final = ctypes.c_char_p


class _PlaceInList(ctypes.Structure):
    """`rd_kafka_topic_partition_t`, a part of the library's public interface."""

    _fields_ = (
        ("topic", TEXT),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", POINTER),
        ("metadata_size", SIZE),
        ("opaque", POINTER),
        ("err", INT),
        ("private", POINTER),
    )


class _PlaceList(ctypes.Structure):
    """`rd_kafka_topic_partition_list_t`, likewise."""

    _fields_ = (("cnt", INT), ("size", INT), ("elems", ctypes.POINTER(_PlaceInList)))


# function of the library, without its prefix: (what it returns, what it takes)
FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "conf_new": (POINTER, ()),
    "conf_set": (INT, (POINTER, TEXT, TEXT, TEXT, SIZE)),
    "conf_destroy": (None, (POINTER,)),
    "new": (POINTER, (INT, POINTER, TEXT, SIZE)),
    "destroy": (None, (POINTER,)),
    "queue_new": (POINTER, (POINTER,)),
    "queue_poll": (POINTER, (POINTER, INT)),
    "queue_destroy": (None, (POINTER,)),
    "topic_partition_list_new": (ctypes.POINTER(_PlaceList), (INT,)),
    "topic_partition_list_add": (
        ctypes.POINTER(_PlaceInList),
        (ctypes.POINTER(_PlaceList), TEXT, ctypes.c_int32),
    ),
    "topic_partition_list_destroy": (None, (ctypes.POINTER(_PlaceList),)),
    "AdminOptions_new": (POINTER, (POINTER, INT)),
    "AdminOptions_set_request_timeout": (INT, (POINTER, INT, TEXT, SIZE)),
    "AdminOptions_destroy": (None, (POINTER,)),
    "DeleteConsumerGroupOffsets_new": (POINTER, (TEXT, ctypes.POINTER(_PlaceList))),
    "DeleteConsumerGroupOffsets_destroy": (None, (POINTER,)),
    "DeleteConsumerGroupOffsets": (
        None,
        (POINTER, ctypes.POINTER(POINTER), SIZE, POINTER, POINTER),
    ),
    "event_error": (INT, (POINTER,)),
    "event_error_string": (TEXT, (POINTER,)),
    "event_destroy": (None, (POINTER,)),
    "event_DeleteConsumerGroupOffsets_result": (POINTER, (POINTER,)),
    "DeleteConsumerGroupOffsets_result_groups": (
        ctypes.POINTER(POINTER),
        (POINTER, ctypes.POINTER(SIZE)),
    ),
    "group_result_error": (POINTER, (POINTER,)),
    "group_result_partitions": (ctypes.POINTER(_PlaceList), (POINTER,)),
    "error_code": (INT, (POINTER,)),
    "error_string": (TEXT, (POINTER,)),
}


def delete_offsets(connection: Connection, group: str, places: Sequence[Place]) -> None:
    """Delete what a group has committed for places; the first that is refused is the failure."""
    if len(places) > MAX_PLACES:
        words = f"{len(places)} partitions are named, {MAX_PLACES} may be at once"
        raise failure("INVALID_REQUEST", f"group {group}", words)
    names = {group, *(place.topic for place in places)}
    if not places or any(not name or "\0" in name for name in names):
        raise failure("INVALID_REQUEST", f"group {group}", "a group and partitions must be named")
    lib = _library()
    with ExitStack() as held:
        client = _client(lib, connection, held)
        queue = _held(held, lib["queue_new"](client), lib["queue_destroy"])
        _send(lib, client, queue, connection, group, places)
        _check(lib, _answer(lib, queue, connection, group, held), group)


@cache
def _library() -> Mapping[str, Any]:
    # The extension module is linked to the library, so its symbols are found through it, wherever
    # a platform's wheel keeps the file.
    loaded = ctypes.CDLL(cimpl.__file__)
    functions = {}
    for name, (returns, takes) in FUNCTIONS.items():
        function = getattr(loaded, f"rd_kafka_{name}")
        function.restype, function.argtypes = returns, takes
        functions[name] = function
    return functions


def _held(held: ExitStack, thing: T, destroy: Callable[[T], None]) -> T:
    assert thing, "librdkafka made nothing"
    held.callback(destroy, thing)
    return thing


def _client(lib: Mapping[str, Any], connection: Connection, held: ExitStack) -> Handle:
    said = ctypes.create_string_buffer(ERROR_BYTES)
    conf = lib["conf_new"]()
    for key, value in connection.settings(Reach(connection.bootstrap)).items():
        # What calls back into Python is for the package; the deadline bounds what we wait.
        if not callable(value):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if lib["conf_set"](conf, key.encode(), text.encode(), said, ERROR_BYTES):
                lib["conf_destroy"](conf)
                raise failure("INVALID_REQUEST", connection.bootstrap, _text(said.value))
    client = lib["new"](PRODUCER, conf, said, ERROR_BYTES)
    if not client:
        lib["conf_destroy"](conf)
        raise failure("INVALID_REQUEST", connection.bootstrap, _text(said.value))
    made: Handle = _held(held, client, lib["destroy"])
    return made


def _send(
    lib: Mapping[str, Any],
    client: Handle,
    queue: Handle,
    connection: Connection,
    group: str,
    places: Sequence[Place],
) -> None:
    said = ctypes.create_string_buffer(ERROR_BYTES)
    # The library copies all of it before it returns.
    with ExitStack() as held:
        named = _held(
            held,
            lib["topic_partition_list_new"](len(places)),
            lib["topic_partition_list_destroy"],
        )
        for place in places:
            lib["topic_partition_list_add"](named, place.topic.encode(), place.partition)
        request = _held(
            held,
            lib["DeleteConsumerGroupOffsets_new"](group.encode(), named),
            lib["DeleteConsumerGroupOffsets_destroy"],
        )
        options = _held(
            held, lib["AdminOptions_new"](client, ANY_OPERATION), lib["AdminOptions_destroy"]
        )
        timeout_ms = max(1, int(connection.timeout_s * 1000))
        if lib["AdminOptions_set_request_timeout"](options, timeout_ms, said, ERROR_BYTES):
            raise failure("INVALID_REQUEST", connection.bootstrap, _text(said.value))
        lib["DeleteConsumerGroupOffsets"](client, ctypes.byref(POINTER(request)), 1, options, queue)


def _answer(
    lib: Mapping[str, Any], queue: Handle, connection: Connection, group: str, held: ExitStack
) -> Handle:
    """Wait for the one event that comes, in looks short enough for an interrupt."""
    # The library keeps the deadline itself, and tells; a little more lets it.
    deadline = connection.deadline()
    while True:
        is_last = deadline.is_over()
        event = lib["queue_poll"](queue, int((1.0 if is_last else LOOK_S) * 1000))
        if event:
            answer: Handle = _held(held, event, lib["event_destroy"])
            return answer
        if is_last:
            raise failure("REQUEST_TIMED_OUT", f"group {group}")


def _check(lib: Mapping[str, Any], event: Handle, group: str) -> None:
    value = f"group {group}"
    if code := lib["event_error"](event):
        raise translated(KafkaError(code, _text(lib["event_error_string"](event))), value)
    result = lib["event_DeleteConsumerGroupOffsets_result"](event)
    assert result, "the answer is to another question"
    count = SIZE()
    answers = lib["DeleteConsumerGroupOffsets_result_groups"](result, ctypes.byref(count))
    for index in range(count.value):
        if error := lib["group_result_error"](answers[index]):
            words = _text(lib["error_string"](error))
            raise translated(KafkaError(lib["error_code"](error), words), value)
        told = lib["group_result_partitions"](answers[index])
        for number in range(told.contents.cnt if told else 0):
            answer = told.contents.elems[number]
            if answer.err:
                place = Place(topic=_text(answer.topic), partition=answer.partition)
                raise translated(KafkaError(answer.err), f"{value}, {place}")


def _text(words: bytes | None) -> str:
    return (words or b"").decode("utf-8", "replace")
