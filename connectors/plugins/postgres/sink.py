"""A sink into tables of PostgreSQL, exactly once: rows and offsets change in one transaction."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connectors.plugins.postgres import sink_settings
from connectors.plugins.postgres.connection import (
    connected,
    first_line,
    forget,
    is_about_data,
    translated,
)
from connectors.plugins.postgres.offsets import SinkOffsets
from connectors.plugins.postgres.rows import Name, Row, row_of
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
                self._write_all(connection, records)
            except psycopg.Error as error:
                if not is_about_data(error):
                    raise
                if (blamed := self._blamed(connection, records, error)) is not None:
                    raise blamed from error
                # The target was corrected meanwhile. A constraint that is checked at the end of the
                # transaction fails again, without a record to blame.
                self._write_all(connection, records)

    def _write_all(self, connection: "psycopg.Connection[Any]", records: list[SinkRecord]) -> None:
        try:
            with connection.transaction():
                self._write(connection, records)
            for text in sorted(self._warnings - self._warned):
                self._context.warn(text)
            self._warned |= self._warnings
        except Exception:
            # Forget the tables: they may have changed, or their creation was rolled back.
            self._tables.clear()
            raise

    def _write(self, connection: "psycopg.Connection[Any]", records: list[SinkRecord]) -> None:
        """Write records that are not in the table yet, and the offsets after them."""
        self._warnings.clear()
        offsets = self._offsets(connection)
        last = {record.origin: record.origin_offset + 1 for record in records}
        kept = offsets.lock(sorted(last))
        fresh = [
            _row(record, index, self._settings)
            for index, record in enumerate(records)
            # An earlier attempt may have succeeded without an answer.
            if record.origin_offset >= (kept.get(record.origin) or 0) and self._is_executed(record)
        ]
        Writer(connection, self._settings, self._tables, self._warnings.add).write(fresh)
        offsets.store({place: max(end, kept.get(place) or 0) for place, end in last.items()})

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

    def _blamed(
        self,
        connection: "psycopg.Connection[Any]",
        records: list[SinkRecord],
        error: "psycopg.Error",
    ) -> RecordError | None:
        """Return the error of the first record that fails together with those before it."""
        low, high = 0, len(records)
        while low < high:
            middle = (low + high) // 2
            if self._can_write(connection, records[: middle + 1]):
                low = middle + 1
            else:
                high = middle
        if low == len(records):
            return None
        return RecordError(f"PostgreSQL: {first_line(error)} ({error.sqlstate})", index=low)

    def _can_write(self, connection: "psycopg.Connection[Any]", records: list[SinkRecord]) -> bool:
        import psycopg  # noqa: PLC0415 - only tasks need it

        self._tables.clear()
        try:
            with connection.transaction(force_rollback=True):
                self._write(connection, records)
        except psycopg.Error as error:
            if is_about_data(error):
                return False
            raise
        finally:
            self._tables.clear()
        return True

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


def _row(record: SinkRecord, index: int, settings: SinkSettings) -> Row:
    try:
        return row_of(record, index, settings)
    except DataError as error:
        raise RecordError(str(error), index=index) from error
