"""What the matrix asks of a client: to write a list of records, and to read partitions whole.

Each client has one module beside this one; clients/table.py lists them.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from brokers.protocol.records.compression import Compression
from tests.interop.clients.records import Row, Sent, Trait

# A client that has not ended by then hangs; generous, because the machine is shared.
SECONDS = 120


class Writer(Protocol):
    name: str
    # The extras that must be there for it; see tests/suite/extras.py.
    needs: tuple[str, ...]
    # What it has no way to send, with the reason.
    cannot_write: Mapping[Trait, str]

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        codec: Compression,
        *,
        idempotent: bool,
    ) -> None:
        """Write records in their order with one producer; return once all are acknowledged."""
        ...


class Reader(Protocol):
    name: str
    needs: tuple[str, ...]

    def read(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> list[Row]:
        """Read assigned partitions, no group, from their beginning to their present end."""
        ...
