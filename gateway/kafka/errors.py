"""Turns every error between us and a cluster into one exception.

A failure carries Kafka's own name of the error, which people search for, the value it is about, a
sentence, and the next step. Rows of the table below give the kind of failure by name; names without
a row are ordinary failures, in the broker's words.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from brokers.protocol.errors import ErrorCode


class Kind(Enum):
    """The caller's options after a failure; the command line derives exit codes from it."""

    FAILED = "failed"
    USAGE = "usage"  # the request makes no sense
    NOT_FOUND = "not found"
    CONFLICT = "conflict"  # the object exists already, or has changed
    TIMEOUT = "timeout"


class KafkaFailure(Exception):
    """See the module. The text of the exception is the sentence with the error's name."""

    def __init__(self, *, name: str, message: str, value: str, kind: Kind, next_step: str) -> None:
        super().__init__(f"{message} ({name})")
        self.name = name
        self.message = message
        self.value = value
        self.kind = kind
        self.next_step = next_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    kind: Kind = Kind.FAILED
    # None: the broker's own words say more.
    sentence: str | None = None
    next_step: str = ""


# Kafka's error names by number. librdkafka's own errors have other negative numbers than -1.
NAMES: Final = {code.value: code.name for code in ErrorCode}
UNKNOWN: Final = ErrorCode.UNKNOWN_SERVER_ERROR.name

# Kafka's names for errors that librdkafka detects. Others keep librdkafka's own name, which its
# documentation explains.
LOCAL_NAMES: Final[dict[int, str]] = {
    KafkaError._ALL_BROKERS_DOWN: "BROKER_NOT_AVAILABLE",  # noqa: SLF001 - a documented constant
    KafkaError._TRANSPORT: "BROKER_NOT_AVAILABLE",  # noqa: SLF001 - as above
    KafkaError._RESOLVE: "BROKER_NOT_AVAILABLE",  # noqa: SLF001 - as above
    KafkaError._TIMED_OUT: "REQUEST_TIMED_OUT",  # noqa: SLF001 - as above
    KafkaError._TIMED_OUT_QUEUE: "REQUEST_TIMED_OUT",  # noqa: SLF001 - as above
    KafkaError._MSG_TIMED_OUT: "REQUEST_TIMED_OUT",  # noqa: SLF001 - as above
    KafkaError._UNKNOWN_TOPIC: "UNKNOWN_TOPIC_OR_PARTITION",  # noqa: SLF001 - as above
    KafkaError._NOENT: "UNKNOWN_TOPIC_OR_PARTITION",  # noqa: SLF001 - as above
    KafkaError._UNKNOWN_PARTITION: "UNKNOWN_TOPIC_OR_PARTITION",  # noqa: SLF001 - as above
    KafkaError._AUTO_OFFSET_RESET: "OFFSET_OUT_OF_RANGE",  # noqa: SLF001 - as above
    KafkaError._AUTHENTICATION: "SASL_AUTHENTICATION_FAILED",  # noqa: SLF001 - as above
    KafkaError._UNSUPPORTED_FEATURE: "UNSUPPORTED_VERSION",  # noqa: SLF001 - as above
    KafkaError._INVALID_ARG: "INVALID_REQUEST",  # noqa: SLF001 - as above
}

# A group answers a commit from outside with one of three names, depending on its members.
READING: Final = Advice(
    kind=Kind.CONFLICT,
    sentence="the group has members that read at the moment",
    next_step="stop its consumers and try again; its members are listed by `groups members`",
)

# Prefixes of librdkafka's own texts, and its text for an error in an answer.
OWN_WORDS: Final = ("Broker: ", "Local: ")
WORKER_FAILED: Final = " worker failed to parse response: "

ADVICE: Final[dict[str, Advice]] = {
    "UNKNOWN_TOPIC_OR_PARTITION": Advice(
        kind=Kind.NOT_FOUND,
        sentence="the cluster does not know it",
        next_step="check the name and the partition number; the list of topics shows what exists",
    ),
    "UNKNOWN_TOPIC_ID": Advice(
        kind=Kind.NOT_FOUND,
        sentence="it is gone",
        next_step="it was deleted, or deleted and made again: look at the list of topics",
    ),
    "RESOURCE_NOT_FOUND": Advice(
        kind=Kind.NOT_FOUND, next_step="check the name; a list shows what exists"
    ),
    "GROUP_ID_NOT_FOUND": Advice(
        kind=Kind.NOT_FOUND, next_step="check the name; a list shows what exists"
    ),
    "NON_EMPTY_GROUP": READING,
    "UNKNOWN_MEMBER_ID": READING,
    "REBALANCE_IN_PROGRESS": READING,
    "GROUP_SUBSCRIBED_TO_TOPIC": Advice(
        kind=Kind.CONFLICT,
        sentence="the group has members that read this topic",
        next_step="stop the consumers that are subscribed to it and try again",
    ),
    "COORDINATOR_NOT_AVAILABLE": Advice(
        kind=Kind.TIMEOUT,
        sentence="no broker coordinates the group at the moment",
        next_step="see which brokers are up, and try again",
    ),
    "NOT_COORDINATOR": Advice(
        kind=Kind.TIMEOUT,
        sentence="the group's coordinator has just moved to another broker",
        next_step="try again in a moment",
    ),
    "COORDINATOR_LOAD_IN_PROGRESS": Advice(
        kind=Kind.TIMEOUT,
        sentence="the group's coordinator is still reading what is stored",
        next_step="try again in a moment",
    ),
    "TOPIC_ALREADY_EXISTS": Advice(
        kind=Kind.CONFLICT,
        sentence="it exists already",
        next_step="take another name, or describe the topic that is there",
    ),
    "REASSIGNMENT_IN_PROGRESS": Advice(
        kind=Kind.CONFLICT, next_step="wait until the reassignment is done"
    ),
    "OFFSET_OUT_OF_RANGE": Advice(
        kind=Kind.NOT_FOUND,
        sentence="the partition does not hold that offset",
        next_step="describe the topic to see the first and the last offset of each partition",
    ),
    "REQUEST_TIMED_OUT": Advice(
        kind=Kind.TIMEOUT,
        sentence="no answer came in time",
        next_step="see whether the brokers are up, or allow more time",
    ),
    "BROKER_NOT_AVAILABLE": Advice(
        sentence="no broker answers there",
        next_step="start the cluster, or name another address of it",
    ),
    "LEADER_NOT_AVAILABLE": Advice(
        kind=Kind.TIMEOUT,
        sentence="a partition has no leader at the moment",
        next_step="see which brokers are up; the partition waits for one of its replicas",
    ),
    "MESSAGE_TOO_LARGE": Advice(
        sentence="the record is larger than the topic allows",
        next_step="raise max.message.bytes of the topic, compress, or send less at once",
    ),
    "INVALID_CONFIG": Advice(
        next_step="describe the configs to see the keys that exist and what they mean"
    ),
    "INVALID_TOPIC_EXCEPTION": Advice(next_step="choose another name"),
    "INVALID_REPLICATION_FACTOR": Advice(
        next_step="ask for fewer replicas; no cluster keeps more of them than it has brokers"
    ),
    "INVALID_PARTITIONS": Advice(
        next_step="name the number of partitions in all; it can grow and never shrinks"
    ),
    "TOPIC_AUTHORIZATION_FAILED": Advice(
        sentence="you may not do this with the topic",
        next_step="ask an administrator of the cluster for the right",
    ),
    "GROUP_AUTHORIZATION_FAILED": Advice(
        sentence="you may not do this with the group",
        next_step="ask an administrator of the cluster for the right",
    ),
    "CLUSTER_AUTHORIZATION_FAILED": Advice(
        sentence="you may not do this with the cluster",
        next_step="ask an administrator of the cluster for the right",
    ),
    "SASL_AUTHENTICATION_FAILED": Advice(
        next_step="check the user name, the password and the SASL mechanism"
    ),
    "UNSUPPORTED_VERSION": Advice(
        next_step="the brokers do not offer this: see which version they run"
    ),
    "INVALID_REQUEST": Advice(kind=Kind.USAGE, next_step="correct the value and try again"),
    "NOT_ENOUGH_REPLICAS": Advice(
        next_step="bring the missing brokers back, or lower min.insync.replicas"
    ),
    "KAFKA_STORAGE_ERROR": Advice(
        next_step="look at the disk of the partition's leader: full, or gone read-only"
    ),
}


def broker_failure(code: int, value: str, words: str | None = None) -> KafkaFailure:
    """Return the failure of an answer's error code, about a value, in the broker's words."""
    return failure(NAMES.get(code, UNKNOWN), value, words or "")


def kafka_name(error: KafkaError) -> str:
    """Return Kafka's name of an error, or librdkafka's if Kafka has none."""
    number: int = error.code()
    if number in NAMES:
        return NAMES[number]
    return LOCAL_NAMES.get(number) or error.name().lstrip("_")


def failure(name: str, value: str, words: str = "") -> KafkaFailure:
    """Return the failure of a name, about a value, with the broker's words if there are any."""
    advice = ADVICE.get(name, Advice())
    said = advice.sentence if advice.sentence and not words else words
    said = said or name.lower().replace("_", " ")
    # A broker's own words usually contain the topic already.
    named = value.partition(" ")[2]
    return KafkaFailure(
        name=name,
        message=said if named and repr(named) in said else f"{value}: {said}",
        value=value,
        kind=advice.kind,
        next_step=advice.next_step,
    )


def translated(error: KafkaError, value: str) -> KafkaFailure:
    """Turn librdkafka's error into a KafkaFailure."""
    name = kafka_name(error)
    words = (error.str() or "").strip().rstrip(".")
    # The actual error follows the name of the library's function.
    if WORKER_FAILED in words:
        words = words[max(words.rfind(own) for own in OWN_WORDS) :]
    # These are librdkafka's own texts, which say less than the table.
    is_generic = words.startswith(OWN_WORDS)
    has_sentence = bool(ADVICE.get(name, Advice()).sentence)
    if is_generic:
        words = "" if has_sentence else words.partition(": ")[2].lower()
    elif has_sentence and error.code() < 0:
        words = ""
    return failure(name, value, words)


def from_exception(error: KafkaException | ValueError | TypeError, value: str) -> KafkaFailure:
    """Turn an exception of confluent-kafka into a KafkaFailure; bad arguments raise Python's."""
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return translated(error.args[0], value)
    return failure("INVALID_REQUEST", value, str(error))
