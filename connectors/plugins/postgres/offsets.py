"""How far a sink has written, as rows of the target: changed in the transaction of the rows.

A row names the task that has its partition, and the epoch of that. A slice claims its rows when it
begins, unless the same task has a later owner; whoever finds somebody else in a row later on writes
nothing. A row is locked from the look at it until the end of the transaction, so that two owners
cannot pass each other.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from connectors.sdk.errors import RetriableError
from connectors.sdk.records import TopicPartition

if TYPE_CHECKING:
    import psycopg

MAKE: Final = """
    CREATE TABLE IF NOT EXISTS {} (
        connector text NOT NULL,
        topic text NOT NULL,
        partition integer NOT NULL,
        next_offset bigint,
        task integer NOT NULL,
        epoch bigint NOT NULL,
        changed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (connector, topic, partition)
    )
"""
CLAIM: Final = """
    INSERT INTO {} AS o (connector, topic, partition, task, epoch)
    SELECT %(connector)s, p.topic, p.partition, %(task)s, %(epoch)s
    FROM unnest(%(topics)s::text[], %(partitions)s::integer[]) AS p (topic, partition)
    ORDER BY 2, 3
    ON CONFLICT (connector, topic, partition)
    DO UPDATE SET task = EXCLUDED.task, epoch = EXCLUDED.epoch
    WHERE o.task <> EXCLUDED.task OR o.epoch < EXCLUDED.epoch
"""
LOOK: Final = """
    SELECT o.topic, o.partition, o.next_offset, o.task, o.epoch
    FROM {} o JOIN unnest(%(topics)s::text[], %(partitions)s::integer[]) AS p (topic, partition)
    ON o.topic = p.topic AND o.partition = p.partition
    WHERE o.connector = %(connector)s
    ORDER BY 1, 2
    FOR UPDATE OF o
"""
STORE: Final = """
    UPDATE {} o SET next_offset = p.next_offset, changed_at = now()
    FROM unnest(%(topics)s::text[], %(partitions)s::integer[], %(offsets)s::bigint[])
        AS p (topic, partition, next_offset)
    WHERE o.connector = %(connector)s AND o.topic = p.topic AND o.partition = p.partition
"""


class SinkOffsets:
    def __init__(
        self,
        connection: "psycopg.Connection[Any]",
        *,
        table: str,
        connector: str,
        task: int,
        epoch: int,
    ) -> None:
        self._connection = connection
        self._table = tuple(table.split("."))
        self._connector = connector
        self._owner = (task, epoch)

    def make(self) -> None:
        """Make the table where it is missing, which needs no right where it is not."""
        from psycopg import sql  # noqa: PLC0415 - only tasks need it

        quoted = sql.Identifier(*self._table).as_string(self._connection)
        (found,) = self._connection.execute("SELECT to_regclass(%s)", (quoted,)).fetchone() or ("",)
        if not found:
            self._execute(MAKE)

    def claim(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Shut out earlier owners; return the offsets to begin at, of partitions that have one."""
        named = self._named(partitions)
        with self._connection.transaction():
            self._execute(CLAIM, {**named, "task": self._owner[0], "epoch": self._owner[1]})
            found = self.lock(partitions)
        return {place: offset for place, offset in found.items() if offset is not None}

    def lock(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return offsets, whose rows nobody else changes in this transaction."""
        rows = self._execute(LOOK, self._named(partitions)).fetchall()
        if others := [row for row in rows if tuple(row[3:]) != self._owner]:
            topic, partition, _, task, epoch = others[0]
            raise RetriableError(
                f"{topic}, partition {partition}: a later owner has taken over (task {task}, epoch "
                f"{epoch}; ours are {self._owner[0]} and {self._owner[1]})"
            )
        return {TopicPartition(topic=row[0], partition=row[1]): row[2] for row in rows}

    def store(self, offsets: Mapping[TopicPartition, int]) -> None:
        changed = self._execute(STORE, {**self._named(offsets), "offsets": list(offsets.values())})
        if changed.rowcount != len(offsets):
            raise RetriableError("rows of offsets were removed meanwhile; they are made anew")

    def _named(self, partitions: Iterable[TopicPartition]) -> dict[str, Any]:
        named = list(partitions)
        return {
            "connector": self._connector,
            "topics": [place.topic for place in named],
            "partitions": [place.partition for place in named],
        }

    def _execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Any:
        from psycopg import sql  # noqa: PLC0415 - only tasks need it

        text = sql.SQL(statement).format(sql.Identifier(*self._table))
        return self._connection.execute(text, values)
