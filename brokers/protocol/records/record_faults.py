"""The records that made a broker refuse their batch (KIP-467): a producer blames these alone.

Knows no rules. The batch is refused as a whole, so what is wrong with one record is told of every
record it is wrong with.
"""

from dataclasses import dataclass
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError

# Faults of one answer; one of them takes about 100 bytes of it. A client is told of the others by
# their number: librdkafka and Java send batches of a few thousand records, which are alike.
MAX_TOLD_FAULTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class RecordFault:
    """What is wrong with one record; `index` counts from 0 in its batch."""

    index: int
    message: str


class Faults:
    """Gathers what is wrong with the records of one batch, in the order of the records."""

    __slots__ = ("_has_bad_time", "count", "told")

    def __init__(self) -> None:
        self.count = 0
        self.told: list[RecordFault] = []
        self._has_bad_time = False

    def add(self, index: int, message: str, *, is_time: bool = False) -> None:
        self.count += 1
        self._has_bad_time |= is_time
        if self.count <= MAX_TOLD_FAULTS:
            self.told.append(RecordFault(index, message))

    @property
    def code(self) -> ErrorCode:
        """Kafka's choice where records are refused for both reasons."""
        return ErrorCode.INVALID_TIMESTAMP if self._has_bad_time else ErrorCode.INVALID_RECORD


class RecordsRefused(KafkaError):
    """A batch is refused because of some of its records."""

    def __init__(self, faults: Faults, record_count: int) -> None:
        first = faults.told[0]
        super().__init__(
            faults.code,
            f"{faults.count} of {record_count} records are refused, and the batch with them: "
            f"record {first.index} {first.message}",
        )
        self.faults = tuple(faults.told)
