"""A connection in replication mode, polled by slices.

The client library supports COPY in both directions only in its lowest layer, which only this
module uses.
"""

import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.plugins.postgres.capture import pgoutput
from connectors.plugins.postgres.capture.pgoutput import Keepalive, Payload
from connectors.plugins.postgres.capture.positions import parse, text_of
from connectors.plugins.postgres.connection import judged
from connectors.sdk.errors import ConnectorError, RetriableError

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSlot:
    """A new slot: the log has everything after `lsn`, and `snapshot` everything before.

    The snapshot lives until the connection is used again.
    """

    lsn: int
    snapshot: str


class Replication:
    """One connection: it creates a slot, or streams from one."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._wire = connection.pgconn
        self._is_asked = False
        self.is_streaming = False

    def close(self) -> None:
        self._connection.close()

    def begin_slot(self, name: str) -> None:
        """Request a slot, which waits until all current transactions have ended."""
        self._send(f"CREATE_REPLICATION_SLOT {_quoted(name)} LOGICAL pgoutput EXPORT_SNAPSHOT")

    def new_slot(self) -> NewSlot | None:
        """Return the requested slot; None if it is not created yet."""
        result = self._answer()
        if result is None:
            return None
        told = [(result.get_value(0, column) or b"").decode() for column in range(3)]
        self._drain()
        return NewSlot(lsn=parse(told[1]), snapshot=told[2])

    def begin_stream(self, slot: str, *, lsn: int, publications: Sequence[str]) -> None:
        """Request all transactions that end after an LSN."""
        names = ",".join(map(_quoted, publications)).replace("'", "''")
        self._send(
            f"START_REPLICATION SLOT {_quoted(slot)} LOGICAL {text_of(lsn)}"
            f" (proto_version '1', publication_names '{names}')"
        )

    def has_begun(self) -> bool:
        """Return whether the stream has begun."""
        if not self.is_streaming and self._answer() is not None:
            self.is_streaming = True
        return self.is_streaming

    def take(self) -> Payload | Keepalive | None:
        """Return the next frame; None if none has arrived."""
        assert self.is_streaming, "a stream is begun before it is read"
        size, data = self._wire.get_copy_data(1)
        if size == 0:
            self._wire.consume_input()
            size, data = self._wire.get_copy_data(1)
        if size > 0:
            return pgoutput.frame(bytes(data))
        if size < 0:
            self._fail()
        return None

    def wait(self, seconds: float) -> bool:
        """Wait for data; return whether any arrived."""
        readable, _, _ = select.select([self._wire.socket], [], [], seconds)
        return bool(readable)

    def confirm(self, lsn: int) -> None:
        """Confirm everything up to an LSN, so that the server may free it."""
        assert self.is_streaming, "a stream is begun before it is confirmed"
        self._wire.put_copy_data(pgoutput.status(lsn, now_us=time.time_ns() // 1000))
        self._wire.flush()

    def _send(self, statement: str) -> None:
        assert not self._is_asked, "one request at a time"
        self._wire.send_query(statement.encode())
        self._wire.flush()
        self._is_asked = True

    def _answer(self) -> "PGresult | None":
        from psycopg import pq  # noqa: PLC0415 - only tasks need it

        if not self._is_asked:
            raise ConnectorError("the stream of changes was not requested")
        self._wire.flush()
        self._wire.consume_input()
        if self._wire.is_busy():
            return None
        self._is_asked = False
        result = self._wire.get_result()
        if result is None or result.status not in {
            pq.ExecStatus.TUPLES_OK,
            pq.ExecStatus.COPY_BOTH,
        }:
            self._raise(result)
        return result

    def _drain(self) -> None:
        while self._wire.get_result() is not None:
            pass

    def _fail(self) -> None:
        """Raise the error with which the server ended the stream."""
        self._raise(self._wire.get_result())

    def _raise(self, result: "PGresult | None") -> None:
        from psycopg import pq  # noqa: PLC0415 - only tasks need it

        if result is None or result.status != pq.ExecStatus.FATAL_ERROR:
            raise RetriableError("PostgreSQL: the server has ended the stream of changes")
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        text = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        raise judged(state.decode(), text.decode(errors="replace"))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
