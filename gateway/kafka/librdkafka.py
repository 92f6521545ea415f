"""Calls functions of librdkafka that its Python package lacks, with clients of its own.

Knows the types of librdkafka's functions, but not the purpose of calls. It loads the library that
the package contains. The caller's `ExitStack` frees everything that it creates.
"""

import ctypes
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from enum import IntEnum
from functools import cache
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, cimpl

from gateway.kafka.clients import Settings, settings_of
from gateway.kafka.connection import LOOK_S, Connection, Deadline, Reach
from gateway.kafka.errors import failure, translated

T = TypeVar("T")
# Objects of the library are pointers, as numbers.
Handle = int

ANY_OPERATION: Final = 0
ERROR_BYTES: Final = 512
# The library enforces deadlines itself and reports their end; wait a little longer for that.
LAST_LOOK_S: Final = 1.0
# A consumer that never joined a group need not leave one.
WITHOUT_LEAVING: Final = 0x8

POINTER: Final = ctypes.c_void_p
INT: Final = ctypes.c_int
SIZE: Final = ctypes.c_size_t
TEXT: Final = ctypes.c_char_p


class ClientKind(IntEnum):
    """The library's numbers."""

    PRODUCER = 0
    CONSUMER = 1


class _PlaceInList(ctypes.Structure):
    """`rd_kafka_topic_partition_t`, part of the library's public interface."""

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
    """`rd_kafka_topic_partition_list_t`, part of it as well."""

    _fields_ = (("cnt", INT), ("size", INT), ("elems", ctypes.POINTER(_PlaceInList)))


# Arguments of an admin call: the client, the requests and their number, options, a queue.
_SENDS: Final = (None, (POINTER, ctypes.POINTER(POINTER), SIZE, POINTER, POINTER))
_GROUPS: Final = (ctypes.POINTER(POINTER), (POINTER, ctypes.POINTER(SIZE)))

# function of the library, without its prefix: (result type, argument types)
FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "conf_new": (POINTER, ()),
    "conf_set": (INT, (POINTER, TEXT, TEXT, TEXT, SIZE)),
    "conf_destroy": (None, (POINTER,)),
    "new": (POINTER, (INT, POINTER, TEXT, SIZE)),
    "destroy_flags": (None, (POINTER, INT)),
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
    "DeleteConsumerGroupOffsets": _SENDS,
    "ListConsumerGroupOffsets_new": (POINTER, (TEXT, ctypes.POINTER(_PlaceList))),
    "ListConsumerGroupOffsets_destroy": (None, (POINTER,)),
    "ListConsumerGroupOffsets": _SENDS,
    "event_error": (INT, (POINTER,)),
    "event_error_string": (TEXT, (POINTER,)),
    "event_destroy": (None, (POINTER,)),
    "event_DeleteConsumerGroupOffsets_result": (POINTER, (POINTER,)),
    "DeleteConsumerGroupOffsets_result_groups": _GROUPS,
    "event_ListConsumerGroupOffsets_result": (POINTER, (POINTER,)),
    "ListConsumerGroupOffsets_result_groups": _GROUPS,
    "group_result_error": (POINTER, (POINTER,)),
    "group_result_partitions": (ctypes.POINTER(_PlaceList), (POINTER,)),
    "error_code": (INT, (POINTER,)),
    "error_string": (TEXT, (POINTER,)),
}


@cache
def library() -> Mapping[str, Any]:
    """Return the functions of the table, by their names in it."""
    # The extension module is linked to the library, so its symbols are found through it, wherever a
    # platform's wheel stores the file.
    loaded = ctypes.CDLL(cimpl.__file__)
    functions = {}
    for name, (returns, takes) in FUNCTIONS.items():
        function = getattr(loaded, f"rd_kafka_{name}")
        function.restype, function.argtypes = returns, takes
        functions[name] = function
    return functions


def kept(held: ExitStack, thing: T, destroy: Callable[[T], None]) -> T:
    """Return an object of the library, which the stack destroys."""
    assert thing, "librdkafka made nothing"
    held.callback(destroy, thing)
    return thing


def client_of(
    connection: Connection, held: ExitStack, use: Settings, *, kind: ClientKind
) -> Handle:
    """Create a client that is independent of the Python package."""
    lib, said = library(), ctypes.create_string_buffer(ERROR_BYTES)
    conf = lib["conf_new"]()
    for key, value in settings_of(connection, Reach(connection.bootstrap), use).items():
        # Callbacks into Python work only in the package; the deadline limits the wait instead.
        if not callable(value):
            told = str(value).lower() if isinstance(value, bool) else str(value)
            if lib["conf_set"](conf, key.encode(), told.encode(), said, ERROR_BYTES):
                lib["conf_destroy"](conf)
                raise failure("INVALID_REQUEST", connection.bootstrap, text(said.value))
    client = lib["new"](kind, conf, said, ERROR_BYTES)
    if not client:
        lib["conf_destroy"](conf)
        raise failure("INVALID_REQUEST", connection.bootstrap, text(said.value))
    made: Handle = kept(held, client, lambda client: lib["destroy_flags"](client, WITHOUT_LEAVING))
    return made


def options_for(client: Handle, seconds: float, value: str, held: ExitStack) -> Handle:
    """Create the options of an admin call with a timeout."""
    lib, said = library(), ctypes.create_string_buffer(ERROR_BYTES)
    options: Handle = kept(
        held, lib["AdminOptions_new"](client, ANY_OPERATION), lib["AdminOptions_destroy"]
    )
    timeout_ms = max(1, int(seconds * 1000))
    if lib["AdminOptions_set_request_timeout"](options, timeout_ms, said, ERROR_BYTES):
        raise failure("INVALID_REQUEST", value, text(said.value))
    return options


def answer_of(queue: Handle, deadline: Deadline, value: str, held: ExitStack) -> Handle:
    """Wait for the single event, in steps short enough for an interrupt."""
    lib = library()
    while True:
        is_last = deadline.is_over()
        event = lib["queue_poll"](queue, int((LAST_LOOK_S if is_last else LOOK_S) * 1000))
        if event:
            answer: Handle = kept(held, event, lib["event_destroy"])
            return answer
        if is_last:
            raise failure("REQUEST_TIMED_OUT", value)


def groups_of(event: Handle, call: str, value: str) -> list[Any]:
    """Return an answer's lists of partitions, one for each group. Raises its error."""
    lib = library()
    if code := lib["event_error"](event):
        raise translated(KafkaError(code, text(lib["event_error_string"](event))), value)
    result = lib[f"event_{call}_result"](event)
    assert result, "the answer is to another question"
    count = SIZE()
    answers = lib[f"{call}_result_groups"](result, ctypes.byref(count))
    found = []
    for index in range(count.value):
        if error := lib["group_result_error"](answers[index]):
            words = text(lib["error_string"](error))
            raise translated(KafkaError(lib["error_code"](error), words), value)
        if told := lib["group_result_partitions"](answers[index]):
            found.append(told.contents)
    return found


def text(words: bytes | None) -> str:
    """Decode a text of the library, whatever its encoding."""
    return (words or b"").decode("utf-8", "replace")
