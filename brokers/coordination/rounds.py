"""Groups the operations of a shard into a round, whose records form one batch and wait together.

Translates the partition's errors for clients of a coordinator; knows nothing of claims, or of the
purpose of operations.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from brokers.coordination.answers import Done
from brokers.coordination.shard import NOBODY, Answer, Operation, Outcome, Parked, S, Ticket
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE
from brokers.protocol.records.builder import BatchBuilder

# Together about 5 ms to build and replay, the most that a turn of the loop may take.
MAX_ROUND_BYTES: Final = 512 * 1024
MAX_ROUND_RECORDS: Final = 500
# The size of a record without key and value: seven numbers and an attribute byte, at their longest.
_RECORD_OVERHEAD: Final = 40

S_owned = TypeVar("S_owned")

_UNAVAILABLE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
    }
)


def client_error(error: KafkaError) -> KafkaError:
    """Return the error for a coordinator's client if an append was refused; codes are Kafka's."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    if error.code in _UNAVAILABLE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif error.code in _MOVED:
        code = ErrorCode.NOT_COORDINATOR
    return KafkaError(code, error.message)


def not_coordinator(topic: str, index: int) -> KafkaError:
    """Return the error that makes a client look for the coordinator again."""
    return KafkaError(
        ErrorCode.NOT_COORDINATOR, f"this broker does not coordinate by {topic}-{index}"
    )


class Pending(Generic[S]):
    """An operation until it is answered."""

    __slots__ = ("done", "operation", "outcome", "size", "ticket")

    def __init__(self, operation: Operation[S], ticket: Ticket, done: Done | None) -> None:
        self.operation = operation
        self.ticket = ticket
        self.done = done  # None once it is answered; without a client, it gets errors only
        self.outcome: Outcome[S] | None = None  # once it has been run
        self.size = 0

    @property
    def is_asked(self) -> bool:
        return self.ticket != NOBODY

    @property
    def records(self) -> int:
        return 0 if self.outcome is None else len(self.outcome.records)

    def take(self, outcome: Outcome[S]) -> None:
        """Store the outcome, and compute how many bytes of a batch its records take."""
        self.outcome = outcome
        self.size = 0  # of this step only: earlier steps had batches of their own
        for record in outcome.records:
            self.size += _RECORD_OVERHEAD + len(record.key) + len(record.value or b"")


def take_round(gathering: deque[Pending[S]], max_bytes: int) -> list[Pending[S]]:
    """Remove and return the first operations that fit into one round, at least one."""
    taken = [gathering.popleft()]
    size, records = HEADER_SIZE + taken[0].size, taken[0].records
    while gathering:
        size += gathering[0].size
        records += gathering[0].records
        if size > max_bytes or records > MAX_ROUND_RECORDS:
            break
        taken.append(gathering.popleft())
    return taken


def batch_of(pendings: Sequence[Pending[S]], now_ms: int) -> bytearray:
    """Return the records of all operations, in order, as a batch that the log may patch."""
    builder = BatchBuilder()
    for pending in pendings:
        assert pending.outcome is not None, f"{pending.operation.name} has not been run"
        for record in pending.outcome.records:
            builder.append(record.key, record.value, timestamp=now_ms)
    return builder.build()


class RoundOwner(Protocol[S_owned]):
    """The shard that a round belongs to."""

    def committed(self, ended: "Round[S_owned]") -> None:
        """The high watermark has passed its batch."""

    def lost(self, ended: "Round[S_owned]") -> None:
        """The leadership of the partition is over: it is unknown whether the batch survives."""

    def late(self) -> None:
        """The disk takes too long. The round continues, but its clients must not wait."""


class Round(Generic[S]):
    """Waits until its batch is committed, on behalf of its operations."""

    __slots__ = ("_owner", "began", "due_ms", "now_ms", "pendings")

    def __init__(
        self, owner: RoundOwner[S], pendings: list[Pending[S]], *, now_ms: int, began: float
    ) -> None:
        self._owner = owner
        self.pendings = pendings
        self.now_ms = now_ms  # the timestamp of its records
        self.began = began
        self.due_ms = 0.0

    def reached(self, _slot: int) -> None:
        self._owner.committed(self)

    def lost(self, _slot: int, _error: KafkaError) -> None:
        self._owner.lost(self)

    def expire(self) -> None:
        self._owner.late()


def answer_of(pending: Pending[S]) -> Answer | None:
    """Return the client's answer; None if it is parked, or if there is no client."""
    response = None if pending.outcome is None else pending.outcome.response
    return None if isinstance(response, Parked) else response
