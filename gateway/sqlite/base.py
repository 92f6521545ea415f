"""Django's SQLite backend, whose write transactions take turns (`gateway.sqlite.turns`).

A transaction takes its turn before BEGIN IMMEDIATE and gives it back after COMMIT or ROLLBACK, and
a statement that writes outside of a transaction does the same around itself. Reads need none.
OPTIONS has one more key than Django's: `is_urgent`, for a connection that skips the queue. Its
`timeout` also limits the wait for the turn. A statement that a full disk refuses gives up the
reserve beside the file, so that the next try succeeds.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from brokers.disk_room import give_up_reserve
from gateway.sqlite.turns import Turn, TurnTimeout

# The wait of sqlite3 if the settings have no timeout.
DEFAULT_TIMEOUT_S: Final = 5.0
# The start of statements that take SQLite's write lock; one with WITH may or may not.
WRITES: Final = re.compile(
    r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|REINDEX|ANALYZE|VACUUM"
    r"|WITH\b.*\b(?:INSERT|UPDATE|DELETE|REPLACE))\b",
    re.IGNORECASE | re.DOTALL,
)


class DatabaseWrapper(base.DatabaseWrapper):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as Django's own
        super().__init__(*args, **kwargs)
        self._turn: Turn | None = None
        self._turn_timeout_s = DEFAULT_TIMEOUT_S
        self.execute_wrappers.append(self._execute)

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        is_urgent = bool(params.pop("is_urgent", False))
        self._turn_timeout_s = float(params.get("timeout", DEFAULT_TIMEOUT_S))
        if self._turn is not None:
            self._turn.close()
        # A database in memory has no other users.
        self._turn = (
            None
            if self.is_in_memory_db()
            else Turn(Path(self.settings_dict["NAME"]), is_urgent=is_urgent)
        )
        return params

    def _start_transaction_under_autocommit(self) -> None:
        self._take_turn()
        try:
            with self._making_way():
                super()._start_transaction_under_autocommit()  # type: ignore[misc]
        # A turn without a transaction would never be given back.
        except BaseException:
            self._end_turn()
            raise

    def _commit(self) -> None:
        try:
            with self._making_way():
                super()._commit()  # type: ignore[misc]
        finally:
            self._end_turn()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            if self._turn is not None:
                self._turn.close()

    def _execute(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: object,
        many: bool,
        context: object,
    ) -> Any:  # noqa: ANN401 - a cursor's
        """Take a turn for a statement that writes outside of a transaction."""
        if self._turn is None or self._turn.is_held or not WRITES.match(sql):
            with self._making_way():
                return execute(sql, params, many, context)
        self._take_turn()
        try:
            with self._making_way():
                return execute(sql, params, many, context)
        finally:
            self._end_turn()

    @contextmanager
    def _making_way(self) -> Iterator[None]:
        try:
            yield
        except OperationalError:
            if self._turn is not None:
                give_up_reserve(Path(self.settings_dict["NAME"]).parent)
            raise

    def _take_turn(self) -> None:
        if self._turn is None:
            return
        try:
            self._turn.take(self._turn_timeout_s)
        except TurnTimeout as error:
            raise OperationalError(str(error)) from error
        except OSError as error:
            raise OperationalError(f"unable to open database file: {error}") from error

    def _end_turn(self) -> None:
        """Give the turn back, unless the transaction is still open because its end has failed."""
        turn = self._turn
        if turn is not None and turn.is_held and not self.connection.in_transaction:
            turn.give_back()
