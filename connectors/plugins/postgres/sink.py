"""A sink into tables of PostgreSQL, exactly once: rows and offsets change in one transaction."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connectors.plugins.postgres import sink_settings
from connectors.plugins.postgres.connection import (
    connected,
    forget,
    translated,
)
from connectors.plugins.postgres.offsets import SinkOffsets
from connectors.plugins.postgres.rows import Name, Row, row_of
from connectors.plugins.postgres.sifting import Refused, is_of_a_row, write_but_refused
from connectors.plugins.postgres.sink_settings import TRUNCATE_ENABLED, SinkSettings
from connectors.plugins.postgres.tables import Table
from connectors.plugins.postgres.truncations import is_truncation
from connectors.plugins.postgres.writes import Writer
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import Parsed, SinkConnector, SinkContext, SinkTask
from connectors.sdk.errors import ConnectorError, DataError, RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition

if TYPE_CHECKING:
    import psycopg

# Keys of `context.kept`: the count of retries, and the warnings that were written.
RETRIES: Final = "postgres.retries"
WARNED: Final = "postgres.warned"


class PostgresSink(SinkConnector):
    name = "samsa.postgres.sink"
    aliases = (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
    )
    title = "Rows into PostgreSQL"
    summary = "Each record becomes a row, once; tables are made and given columns on demand."
    refused: ClassVar[Mapping[str, str]] = sink_settings.REFUSED
    is_exactly_once: ClassVar[bool] = True
    keeps_offsets: ClassVar[bool] = True
    modules: ClassVar[tuple[str, ...]] = ("psycopg",)

    @classmethod
    def definition(cls) -> Definition:
        return sink_settings.definition()

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        return sink_settings.problems(parsed)

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed
        return [{} for _ in range(max_tasks)]

    def task(self) -> SinkTask:
        return PostgresSinkTask()


class PostgresSinkTask(SinkTask):
    def start(self, context: SinkContext, parsed: Parsed) -> None:
        self._context = context
        self._parsed = parsed
        self._settings = SinkSettings.of(parsed, connector=context.connector)
        self._tables: dict[Name, Table] = {}
        # Texts about rows of this transaction, and those that were written to the log.
        self._warnings: set[str] = set()
        self._warned: set[str] = context.kept.setdefault(WARNED, set())
        # The first offsets of partitions without a record so far.
        self._begin: dict[TopicPartition, int] = {}
        self._places: Sequence[TopicPartition] = ()

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        try:
            with translated():
                offsets = self._offsets(connected(self._context, self._parsed))
                offsets.make()
                topics = {place.topic for place in partitions}
                ids = {topic: self._context.topic_id(topic) for topic in topics}
                claimed = offsets.claim(sorted(partitions), ids)
        except RetriableError as error:
            raise self._counted(error) from error
        self._begin, self._places = dict(claimed), partitions
        return claimed

    def put(self, records: list[SinkRecord]) -> None:
        self._require_same_topics(records)
        try:
            self._put(records)
        except RetriableError as error:
            raise self._counted(error) from error
        self._context.kept[RETRIES] = 0

    def _require_same_topics(self, records: list[SinkRecord]) -> None:
        """Fail if a partition continues below the requested offset.

        Its records would count as those that were written at these offsets before.
        """
        for record in records if self._begin else ():
            begin = self._begin.get(record.origin, 0)
            if record.origin_offset < begin:
                table = self._settings.offsets_table
                raise ConnectorError(
                    f"{record.origin_topic}, partition {record.origin_partition} continues at"
                    f" offset {record.origin_offset}, though rows up to offset {begin} are written:"
                    f" the topic was recreated or has lost records. To write what it holds now,"
                    f" delete the row of this partition and of connector"
                    f" {self._settings.offsets_name} from {table}, and restart the task"
                )
            self._begin.pop(record.origin, None)

    def _put(self, records: list[SinkRecord]) -> None:
        import psycopg  # noqa: PLC0415 - only tasks need it

        with translated():
            connection = connected(self._context, self._parsed)
            try:
                self._write_but_refused(connection, records)
            except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
                # A table was changed after it was looked up: look it up again, once.
                self._write_but_refused(connection, records)

    def _write_but_refused(
        self, connection: "psycopg.Connection[Any]", records: list[SinkRecord]
    ) -> None:
        import psycopg  # noqa: PLC0415 - only tasks need it

        try:
            self._write_all(connection, records, None)
        except (RecordError, psycopg.Error) as error:
            if not is_of_a_row(error):
                raise
            refused: Refused = {}
            while not self._write_all(connection, records, refused):
                # A refused row has replaced an earlier one of its key: write that one.
                pass

    def _write_all(
        self,
        connection: "psycopg.Connection[Any]",
        records: list[SinkRecord],
        refused: Refused | None,
    ) -> bool:
        """Write records in one transaction; return False if all is undone, to be done again.

        With `refused`, records that PostgreSQL refuses are added to it, and left out.
        """
        with ExitStack() as failing:
            # Forget the tables: they may have changed, or their creation was rolled back.
            failing.callback(self._tables.clear)
            with connection.transaction() as transaction:
                is_done = self._write(connection, records, refused)
                transaction.force_rollback = not is_done
                if is_done and refused:
                    # If the commit fails, letters are written twice, which is better than never.
                    for index in sorted(refused):
                        self._context.refuse(records[index], refused[index])
                    self._context.settle()
            if not is_done:
                return False
            failing.pop_all()
        for text in sorted(self._warnings - self._warned):
            self._context.warn(text)
        self._warned |= self._warnings
        return True

    def _write(
        self,
        connection: "psycopg.Connection[Any]",
        records: list[SinkRecord],
        refused: Refused | None,
    ) -> bool:
        """Write records that are not in the table yet, and the offsets after them.

        Return whether all of them are written, but those in `refused`.
        """
        self._warnings.clear()
        offsets = self._offsets(connection)
        last = {record.origin: record.origin_offset + 1 for record in records}
        kept = offsets.lock(sorted(last))
        fresh = [
            row
            for index, record in enumerate(records)
            # An earlier attempt may have succeeded without an answer.
            if record.origin_offset >= (kept.get(record.origin) or 0)
            and (row := self._row(record, index, refused)) is not None
        ]
        writer = Writer(connection, self._settings, self._tables, self._warnings.add)
        if refused is None:
            writer.write(fresh)
        elif not write_but_refused(writer, fresh, refused):
            return False
        offsets.store({place: max(end, kept.get(place) or 0) for place, end in last.items()})
        return True

    def _row(self, record: SinkRecord, index: int, refused: Refused | None) -> Row | None:
        """Return the row of a record; None if there is nothing to do with it."""
        if (refused and index in refused) or not self._is_executed(record):
            return None
        try:
            return row_of(record, index, self._settings)
        except DataError as error:
            failed = RecordError(str(error), index=index)
            if refused is None:
                raise failed from error
            refused[index] = failed
            return None

    def _is_executed(self, record: SinkRecord) -> bool:
        """Return whether to write a record; warn about a TRUNCATE, which others do not expect."""
        if not is_truncation(record.value_schema, record.value):
            return True
        if not self._settings.has_truncations:
            self._warnings.add(
                f"topic {record.topic} holds a TRUNCATE, which is skipped, so its table keeps the"
                f" rows: set {TRUNCATE_ENABLED}=true to execute it"
            )
        elif any(place.partition for place in self._places if place.topic == record.origin_topic):
            self._warnings.add(
                f"topic {record.topic} has several partitions, so a TRUNCATE may remove rows that"
                " were written after it, and leave some that were written before: give it one"
            )
        return self._settings.has_truncations

    def _offsets(self, connection: "psycopg.Connection[Any]") -> SinkOffsets:
        return SinkOffsets(
            connection,
            table=self._settings.offsets_table,
            connector=self._settings.offsets_name,
            task=self._context.task,
            epoch=self._context.epoch,
        )

    def _counted(self, error: RetriableError) -> ConnectorError:
        """Return the error to raise for a retriable failure; final after the last retry."""
        forget(self._context)
        # A failure that ends the slice ends what was kept, too.
        before = self._context.kept.get(RETRIES, self._context.retries)
        count = self._context.kept[RETRIES] = before + 1
        if 0 <= self._settings.max_retries < count:
            end = f"; gave up after {count - 1} retries (max.retries)"
            return ConnectorError(error.text, about_record=f"{error.about_record or ''}{end}")
        wait_s = self._settings.retry_wait_s if error.wait_s is None else error.wait_s
        return RetriableError(error.text, wait_s=wait_s, about_record=error.about_record)
