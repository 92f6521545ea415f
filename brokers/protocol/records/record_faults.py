"""Collects the records for which a batch is refused (KIP-467): a producer blames only these.

Knows no rules. The batch is refused as a whole, so a fault is reported for every record that has
it.
"""

from dataclasses import dataclass
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError

# Faults of one response, of about 100 bytes each. A client gets only the number of the others:
# librdkafka and Java send batches of a few thousand records, which are alike.
MAX_TOLD_FAULTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class RecordFault:
    """The fault of one record; `index` counts from 0 in its batch."""

    index: int
    message: str


class Faults:
    """Collects the faults of one batch, in the order of the records."""

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
        """Kafka's choice if records are refused for both reasons."""
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
