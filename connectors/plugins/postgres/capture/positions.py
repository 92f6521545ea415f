"""The position of a capture in the log or in a snapshot, as its stored offset.

Pure. Numbers are LSNs. The server sends a transaction whole, so a position within one consists of
where to start, which transaction it is, and how far its changes have been delivered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connectors.sdk.errors import ConfigError

COMMITTED: Final = "lsn_commit"
TRANSACTION: Final = "lsn_transaction"
CHANGE: Final = "lsn"
SNAPSHOT: Final = "snapshot"
TABLE: Final = "snapshot_table"
OWNER: Final = "snapshot_epoch"
# An LSN has 64 bits.
MAX_LSN: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """All transactions that ended before `committed` are delivered.

    Of the transaction whose commit is at `transaction`, changes before `change` are delivered too.
    During a snapshot, tables up to `table` are. `epoch` is that of the task that took the snapshot.
    """

    committed: int
    transaction: int | None = None
    change: int | None = None
    is_snapshot: bool = False
    table: str | None = None
    epoch: int | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> "Position | None":
        """Parse a stored offset. Raises ConfigError if it has another form."""
        if offset is None:
            return None
        numbers = {}
        for name in (COMMITTED, TRANSACTION, CHANGE, OWNER):
            value = offset.get(name)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 <= value <= MAX_LSN):
                raise ConfigError(f"{name} is {value!r}: give a whole number of 64 bits")
            numbers[name] = value
        if numbers[COMMITTED] is None:
            raise ConfigError(f"the offset has no {COMMITTED}: give the LSN at which to continue")
        table = offset.get(TABLE)
        if table is not None and not isinstance(table, str):
            raise ConfigError(f"{TABLE} is {table!r}: give the name of a table, as public.orders")
        return cls(
            committed=numbers[COMMITTED],
            transaction=numbers[TRANSACTION],
            change=numbers[CHANGE],
            is_snapshot=bool(offset.get(SNAPSHOT)),
            table=table,
            epoch=numbers[OWNER],
        )

    def offset(self) -> dict[str, Any]:
        told: dict[str, Any] = {COMMITTED: self.committed}
        if self.transaction is not None:
            told |= {TRANSACTION: self.transaction, CHANGE: self.change}
        if self.is_snapshot:
            told |= {SNAPSHOT: True}
        if self.table is not None:
            told |= {TABLE: self.table}
        if self.epoch is not None:
            told |= {OWNER: self.epoch}
        return told


def text_of(lsn: int) -> str:
    """Format an LSN as PostgreSQL does: 16/B374D848."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse(text: str) -> int:
    """Parse an LSN."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)
