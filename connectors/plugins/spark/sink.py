"""The sink that has Spark write topics as tables, in bounded batches, one after the other.

A batch is planned, written by Spark beside the table, moved into the table, and marked as done.
Each step is stored first, so a restart continues there, and each row is in the table once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final

from connectors.plugins.spark import batches, engine, keys, tables
from connectors.plugins.spark.batches import Batch, State, WrittenFile
from connectors.plugins.spark.delta import DeltaTable
from connectors.plugins.spark.folders import table_folder
from connectors.plugins.spark.iceberg import IcebergTable, Identifier
from connectors.plugins.spark.keys import Format, Values
from connectors.plugins.spark.pacing import Pacing
from connectors.plugins.spark.plain_rows import PlainRows
from connectors.plugins.spark.progress import Progress
from connectors.plugins.spark.shaping import Shaping
from connectors.plugins.spark.state import StateFile
from connectors.plugins.spark.tables import ParquetTable, Table
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import JobConnector, JobContext, JobTask, Parsed
from connectors.sdk.errors import ConnectorError, RetriableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The name of a connector may have any character and be longer than the name of a folder.
JOB_CHARS: Final = 16
# Limits the list of columns in a message.
MAX_SHOWN_CHARS: Final = 300


class SparkSink(JobConnector):
    name = "samsa.spark.sink"
    title = "Spark tables"
    summary = "Write topics as Parquet files, Delta tables or Iceberg tables, in batches, by Spark."
    pool = "spark"
    extra = "spark"
    modules: ClassVar[tuple[str, ...]] = ("pyspark", "pyarrow", "deltalake", "pyiceberg")

    @classmethod
    def definition(cls) -> Definition:
        return keys.definition()

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        is_json = parsed[keys.VALUES] == Values.JSON.value
        if parsed[keys.SCHEMA] and not is_json:
            wrong = f"Only JSON values have a schema, and {keys.VALUES} is {parsed[keys.VALUES]}"
            return (Value(name=keys.SCHEMA, value=parsed[keys.SCHEMA], errors=(wrong,)),)
        if parsed[keys.PARTITION_BY] and not parsed[keys.SCHEMA]:
            wrong = f"Give {keys.SCHEMA}: folders need columns that every batch has"
            return (
                Value(name=keys.PARTITION_BY, value=parsed[keys.PARTITION_BY], errors=(wrong,)),
            )
        return [
            Value(name=name, value=parsed[name], errors=(wrong,))
            for name, wrong in keys.table_problems(parsed)
        ]

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed, max_tasks
        # Spark spreads a batch over its cores, and batches of a table run one after the other.
        return [{}]

    def task(self) -> JobTask:
        return SparkSinkTask()


class SparkSinkTask(JobTask):
    """Writes the rows that the shaping makes of records to a table."""

    def __init__(self, shaping: Callable[[JobContext, Parsed], Shaping] = PlainRows) -> None:
        self._make_shaping = shaping

    def start(self, context: JobContext, parsed: Parsed) -> None:
        self._context = context
        self._newest_ms: int | None = None
        self._min_files: int = parsed[keys.COMPACT]
        self._may_compact = bool(self._min_files)
        self._folder = table_folder(parsed[keys.PATH])
        self._shaping = self._make_shaping(context, parsed)
        self._layout = self._shaping.layout
        self._pacing = Pacing(context.kept, parsed)
        job = sha256(context.connector.encode("utf-8", "surrogatepass")).hexdigest()[:JOB_CHARS]
        self._file = StateFile(self._folder, job)
        self._table = self._table_of(Format(parsed[keys.FORMAT]), parsed)
        self._progress = Progress(
            context, self._pacing, self._file.read(context.epoch), self._file.write
        )
        # Before reading the offsets of the group, which may belong to a former topic.
        self._progress.settle()
        committed = context.committed()
        if self._state.told and not committed:
            context.log(batches.FORGOTTEN.format(group=context.group))
        adopted, is_moved = batches.adopt(self._state, committed)
        self._progress.state = adopted
        if is_moved:
            context.log("continues at the offsets of its group, which a user has altered")

    @property
    def _state(self) -> State:
        return self._progress.state

    def run(self) -> bool:
        if not self._has_batch():
            self._compact()
            return False
        assert self._state.batch is not None, "one was there or was planned"
        self._watch, self._newest_ms = self._pacing.watch(), None
        if self._state.batch.files is None:
            self._write()
        self._publish()
        self._compact()
        return True

    def _has_batch(self) -> bool:
        """Return whether there is a batch to finish, or to begin, which is planned then."""
        if batches.is_told(self._state) and self._progress.is_idle():
            return False
        self._progress.settle()
        return self._state.batch is not None or self._plan()

    def _compact(self) -> None:
        """Merge small files where the config asks for it, once after each batch and each start."""
        is_due, self._may_compact = self._may_compact, False
        if is_due and isinstance(self._table, DeltaTable):
            self._context.require_lease()
            self._table.compact(self._min_files, self._context.log)

    def _plan(self) -> bool:
        """Fix the next batch; return whether there is one."""
        self._tell()
        planned = self._progress.plan()
        if planned.batch is not None or planned.next != self._state.next:
            # Store it: the end of a partition changes from now on.
            self._progress.keep(planned)
        return planned.batch is not None

    def stop(self) -> None:
        """Do nothing: only the session, which the process keeps, is open between batches."""

    def _table_of(self, kind: Format, parsed: Parsed) -> Table:
        if kind is Format.DELTA:
            return DeltaTable(self._folder, self._layout.folders)
        if kind is Format.ICEBERG:
            namespace, name = keys.table_name(parsed)
            return IcebergTable(
                self._folder,
                self._layout.folders,
                Identifier(namespace=namespace, name=name),
                self._context.connector,
                self._context.log,
            )
        return ParquetTable(self._folder)

    def _write(self) -> None:
        """Have Spark write the batch beside the table, and store the list of files."""
        assert self._state.batch is not None, "there is one"
        batch, lines = batches.trimmed(self._state.batch, self._context.bounds())
        for line in lines:
            self._context.log(line)
        self._context.require_lease()
        self._file.clear_staging()
        if batch.spans:
            with self._progress.attempt(batch):
                batch = self._write_spans(batch)
        else:
            batch = replace(batch, files=())
        self._progress.keep(replace(self._state, batch=batch))

    def _write_spans(self, batch: Batch) -> Batch:
        engine.require_folder(self._file.staging.parent, self._context.kept)
        shaped = self._shaping.shape(batch.spans, self._state)
        self._watch.has_read()
        self._progress.state = replace(self._state, columns=shaped.columns)
        rows = shaped.frame
        self._require_columns(rows)
        self._table.require(rows.schema.json())
        staging = self._file.new_staging()
        tables.write(rows, self._layout.folders, staging, keeps_columns=self._table.keeps_columns)
        counts = shaped.finish()
        self._newest_ms = counts.newest_ms
        files = tuple(tables.written_files(staging, self._state))
        tables.sync_staged(files, self._file.staging)
        there = sum(file.rows for file in files)
        if counts.rows is not None and there != counts.rows:
            raise RetriableError(
                f"the files of batch {self._state.number} hold {there} rows, {counts.rows} were to"
                " be written: it is written again"
            )
        return replace(
            batch,
            files=files,
            read=counts.read,
            skipped=counts.skipped,
            schema=rows.schema.json(),
            keeps_columns=self._table.keeps_columns,
        )

    def _require_columns(self, rows: "DataFrame") -> None:
        there = {name.lower() for name in rows.columns}
        # Compare case-sensitively: a Delta table tells column names apart by case.
        missing = [name for name in self._layout.folders if name not in rows.columns]
        if missing:
            raise ConnectorError(
                f"{keys.PARTITION_BY} names {missing[0]}, which is not a column: the columns are "
                f"{', '.join(rows.columns)[:MAX_SHOWN_CHARS]}"
            )
        if len(there) < len(rows.columns):
            raise ConnectorError(
                f"two columns have one name: {', '.join(rows.columns)[:MAX_SHOWN_CHARS]}; give"
                " one of them another name, or leave columns out that the connector adds"
            )

    def _publish(self) -> None:
        """Move the written files into the table, and mark the batch as done."""
        batch = self._state.batch
        assert batch is not None, "it was written"
        assert batch.files is not None, "it was written"
        if batch.files and batch.keeps_columns is not self._table.keeps_columns:
            raise ConnectorError(
                f"batch {self._state.number} was written for another {keys.FORMAT}, and is not in"
                f" the table yet: set {keys.FORMAT} back until it is, and change it then"
            )
        self._context.require_lease()
        self._require_whole(batch, batch.files)
        tables.move(batch.files, self._file.staging, self._table.files)
        self._table.add(self._state, batch)
        self._progress.keep(self._progress.done())
        self._file.clear_staging()
        self._pacing.done()
        written = sum(file.rows for file in batch.files)
        self._context.count(read=batch.read, written=written, skipped=batch.skipped)
        if batch.files:
            self._context.log(
                f"wrote batch {self._state.number - 1} into {self._folder}"
                f" (rows: {written}, files: {len(batch.files)})"
            )
        self._context.note_batch(
            self._watch.ended(records=batch.read, rows=written, newest_ms=self._newest_ms)
        )
        self._may_compact = bool(self._min_files)
        self._tell()

    def _require_whole(self, batch: Batch, files: Sequence[WrittenFile]) -> None:
        """Have the batch written again if a file has another size than was written."""
        if not tables.revert_if_damaged(files, self._file.staging, self._table.files):
            return
        self._progress.keep(replace(self._state, batch=replace(batch, files=None)))
        raise RetriableError(
            f"a file of batch {self._state.number} has another size than when it was written, as"
            " after a power cut: the batch is written again"
        )

    def _tell(self) -> None:
        """Commit the offsets of the table unless the group has them; RetriableError on failure."""
        if batches.is_told(self._state):
            return
        if not self._context.commit(self._state.next):
            raise RetriableError(
                f"the table is written up to batch {self._state.number}, and group "
                f"{self._context.group} cannot commit it; no other batch begins before that"
            )
        self._progress.keep(replace(self._state, told=dict(self._state.next)))
