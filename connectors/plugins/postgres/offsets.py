"""Stores the offsets of a sink in the target database, in the transaction of the rows.

A row names the task that owns its partition, and the task's epoch. A slice claims its rows when it
begins, unless the same task has a later owner; a task that finds another owner in a row writes
nothing. Reading a row locks it until the end of the transaction, so that two owners cannot write
at the same time.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connectors.sdk.errors import ConnectorError, RetriableError
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
        topic_id text,
        changed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (connector, topic, partition)
    )
"""
# Tables of earlier versions lack this column, and another role may own them.
LACKS_ID: Final = """
    SELECT NOT EXISTS (
        SELECT FROM pg_attribute
        WHERE attrelid = to_regclass(%s) AND attname = 'topic_id' AND NOT attisdropped
    )
"""
ADD_ID: Final = "ALTER TABLE {} ADD COLUMN IF NOT EXISTS topic_id text"
CLAIM: Final = """
    INSERT INTO {} AS o (connector, topic, partition, task, epoch)
    SELECT %(connector)s, p.topic, p.partition, %(task)s, %(epoch)s
    FROM unnest(%(topics)s::text[], %(partitions)s::integer[]) AS p (topic, partition)
    ORDER BY 2, 3
    ON CONFLICT (connector, topic, partition)
    DO UPDATE SET task = EXCLUDED.task, epoch = EXCLUDED.epoch
    WHERE o.task <> EXCLUDED.task OR o.epoch < EXCLUDED.epoch
"""
# An unknown id leaves the stored one.
NAME: Final = """
    UPDATE {} o SET topic_id = p.topic_id
    FROM unnest(%(topics)s::text[], %(partitions)s::integer[], %(ids)s::text[])
        AS p (topic, partition, topic_id)
    WHERE o.connector = %(connector)s AND o.topic = p.topic AND o.partition = p.partition
        AND p.topic_id <> '' AND o.topic_id IS DISTINCT FROM p.topic_id
"""
LOOK: Final = """
    SELECT o.topic, o.partition, o.next_offset, o.topic_id, o.task, o.epoch
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The stored offset of one partition; without a topic id if an earlier version wrote it."""

    offset: int | None
    topic_id: str | None


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
        """Create the table if it does not exist; no right is needed if it does."""
        from psycopg import sql  # noqa: PLC0415 - only tasks need it

        quoted = sql.Identifier(*self._table).as_string(self._connection)
        (found,) = self._connection.execute("SELECT to_regclass(%s)", (quoted,)).fetchone() or ("",)
        if not found:
            self._execute(MAKE)
        (lacks_id,) = self._connection.execute(LACKS_ID, (quoted,)).fetchone() or (False,)
        if lacks_id:
            self._execute(ADD_ID)

    def claim(
        self, partitions: Collection[TopicPartition], topic_ids: Mapping[str, str]
    ) -> Mapping[TopicPartition, int]:
        """Fence earlier owners; return the offsets to begin at, for partitions that have one.

        Raises ConnectorError if such an offset belongs to a topic with another id.
        """
        named = self._named(partitions)
        with self._connection.transaction():
            self._execute(CLAIM, {**named, "task": self._owner[0], "epoch": self._owner[1]})
            found = self._look(partitions)
            self._require_same_topics(found, topic_ids)
            ids = [topic_ids.get(place.topic, "") for place in partitions]
            self._execute(NAME, {**named, "ids": ids})
        return {place: row.offset for place, row in found.items() if row.offset is not None}

    def lock(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return offsets, and lock their rows in this transaction."""
        return {place: row.offset for place, row in self._look(partitions).items()}

    def _require_same_topics(
        self, found: Mapping[TopicPartition, "Row"], topic_ids: Mapping[str, str]
    ) -> None:
        for place, row in found.items():
            now = topic_ids.get(place.topic, "")
            if row.offset is not None and now and row.topic_id not in {now, None}:
                raise ConnectorError(
                    f"topic {place.topic} was deleted and recreated since rows up to offset"
                    f" {row.offset} of its partition {place.partition} were written (its id was"
                    f" {row.topic_id} and is now {now}). To write the new topic, delete the rows of"
                    f" this topic and of connector {self._connector} from {'.'.join(self._table)}"
                    " and restart the task"
                )

    def _look(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, "Row"]:
        rows = self._execute(LOOK, self._named(partitions)).fetchall()
        if others := [row for row in rows if tuple(row[4:]) != self._owner]:
            topic, partition, _, _, task, epoch = others[0]
            raise RetriableError(
                f"{topic}, partition {partition}: a later owner has taken over (task {task}, epoch "
                f"{epoch}; ours are {self._owner[0]} and {self._owner[1]})"
            )
        return {
            TopicPartition(topic=row[0], partition=row[1]): Row(offset=row[2], topic_id=row[3])
            for row in rows
        }

    def store(self, offsets: Mapping[TopicPartition, int]) -> None:
        changed = self._execute(STORE, {**self._named(offsets), "offsets": list(offsets.values())})
        if changed.rowcount != len(offsets):
            raise RetriableError("rows of offsets were removed meanwhile; they are created again")

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
