"""A connection in replication mode, of which a slice asks for what is there.

The client library has no calls for copying both ways but those of
its lowest layer, which are used here and nowhere else.
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
    """A slot that was just made: everything behind `lsn` is in the log, all before in `snapshot`.

    The snapshot lives until the connection is used again.
    """

    lsn: int
    snapshot: str


class Replication:
    """One connection: it makes a slot, or streams from one."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._wire = connection.pgconn
        self._is_asked = False
        self.is_streaming = False

    def close(self) -> None:
        self._connection.close()

    def begin_slot(self, name: str) -> None:
        """Ask for a slot, which takes until all transactions of now have ended."""
        self._send(f"CREATE_REPLICATION_SLOT {_quoted(name)} LOGICAL pgoutput EXPORT_SNAPSHOT")

    def new_slot(self) -> NewSlot | None:
        """Return the slot that was asked for; None where it is not there yet."""
        result = self._answer()
        if result is None:
            return None
        told = [(result.get_value(0, column) or b"").decode() for column in range(3)]
        self._drain()
        return NewSlot(lsn=parse(told[1]), snapshot=told[2])

    def begin_stream(self, slot: str, *, lsn: int, publications: Sequence[str]) -> None:
        """Ask for all transactions that end behind a place."""
        names = ",".join(map(_quoted, publications)).replace("'", "''")
        self._send(
            f"START_REPLICATION SLOT {_quoted(slot)} LOGICAL {text_of(lsn)}"
            f" (proto_version '1', publication_names '{names}')"
        )

    def has_begun(self) -> bool:
        """Return whether the stream is there."""
        if not self.is_streaming and self._answer() is not None:
            self.is_streaming = True
        return self.is_streaming

    def take(self) -> Payload | Keepalive | None:
        """Return the next frame; None where nothing has come."""
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
        """Wait until something has come; False where nothing has."""
        readable, _, _ = select.select([self._wire.socket], [], [], seconds)
        return bool(readable)

    def confirm(self, lsn: int) -> None:
        """Tell the server that all before a place is kept elsewhere, so that it may forget it."""
        assert self.is_streaming, "a stream is begun before it is confirmed"
        self._wire.put_copy_data(pgoutput.status(lsn, now_us=time.time_ns() // 1000))
        self._wire.flush()

    def _send(self, statement: str) -> None:
        assert not self._is_asked, "one question at a time"
        self._wire.send_query(statement.encode())
        self._wire.flush()
        self._is_asked = True

    def _answer(self) -> "PGresult | None":
        from psycopg import pq  # noqa: PLC0415 - only tasks need it

        if not self._is_asked:
            raise ConnectorError("the stream of changes has not been asked for")
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
        """Raise what the server has ended the stream with."""
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
