"""Writes a Delta table by its own library, without a JAR: a batch is one numbered transaction."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.spark.batches import Batch, State
from connectors.plugins.spark.state import sync_folder
from connectors.plugins.spark.tables import require_no_iceberg, sync_file
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.home_files import DELTA_LOG

if TYPE_CHECKING:
    from deltalake import DeltaTable as Delta
    from deltalake import Schema

# Another writer committed first; the library retries before it raises this.
CONFLICTS: Final = ("CommitFailedError",)
# Table properties: rules for rows, and other column names within files.
PROMISES: Final = ("delta.constraints.", "delta.columnMapping.mode")
# Types that the library accepts and readers do not know, as Spark writes them in JSON.
FOREIGN: Final = re.compile(r'"(?:type|elementType|keyType|valueType)":"(interval|void|variant)\b')
# Commits to sync for one batch: the table, its columns and its files, and some of others.
MAX_COMMITS: Final = 10
# Limits the list of types in a message.
MAX_SHOWN_CHARS: Final = 300


class DeltaTable:
    keeps_columns = False

    def __init__(self, folder: Path, partition_by: tuple[str, ...]) -> None:
        self._folder = self.files = folder
        self._partition_by = list(partition_by)

    def require(self, schema: str) -> None:
        from deltalake import Schema  # noqa: PLC0415 - an extra

        try:
            wanted = Schema.from_json(schema)
        # The library and its parsers raise classes of their own.
        except Exception as error:
            raise ConnectorError(f"a Delta table has no such columns: {error}") from error
        if foreign := FOREIGN.search(schema):
            raise ConnectorError(
                f"a Delta table has no such columns: {foreign[1]} is a type of Spark alone; have"
                " value.schema name another one"
            )
        require_no_iceberg(self._folder)
        table = self._open()
        if table is not None:
            self._require_partitions(table)
            _require_plain(self._folder.name, table)
            _require_types(wanted, table.schema())

    def add(self, state: State, batch: Batch) -> None:
        from deltalake import CommitProperties, Schema, Transaction  # noqa: PLC0415 - an extra
        from deltalake.exceptions import DeltaError  # noqa: PLC0415
        from deltalake.transaction import AddAction  # noqa: PLC0415

        if not batch.files:
            return
        try:
            schema = Schema.from_json(batch.schema)
            table = self._opened(schema)
            taken = table.transaction_version(state.app)
            if taken is not None and taken >= state.number:
                self._sync_log()
                return
            self._require_partitions(table)
            self._add_columns(table, schema)
            actions: list[Any] = [
                AddAction(
                    path=file.path,
                    size=file.size,
                    partition_values=dict(file.partition),
                    modification_time=int((self._folder / file.path).stat().st_mtime * 1000),
                    data_change=True,
                    stats=json.dumps({"numRecords": file.rows}),
                )
                for file in batch.files
            ]
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                partition_by=self._partition_by,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(state.app, state.number)]
                ),
            )
        except DeltaError as error:
            text = f"the Delta table {self._folder.name} did not take batch {state.number}: {error}"
            if type(error).__name__ in CONFLICTS:
                raise RetriableError(text) from error
            raise ConnectorError(text) from error

        self._sync_log()

    def compact(self, min_files: int, log: Callable[[str], None]) -> None:
        """Merge small files if a folder has so many."""
        from connectors.plugins.spark import delta_compaction  # noqa: PLC0415 - an extra

        delta_compaction.compact(
            self._folder, min_files=min_files, log=log, sync_log=self._sync_log
        )

    def _sync_log(self) -> None:
        """Sync the transaction to disk, which the library does not do."""
        log = self._folder / DELTA_LOG
        try:
            for path in sorted(log.glob("*.json"))[-MAX_COMMITS:]:
                sync_file(path)
            sync_folder(log)
            sync_folder(self._folder)
        except OSError as error:
            raise RetriableError(f"{log} cannot be synced: {error.strerror}") from error

    def _open(self) -> "Delta | None":
        from deltalake import DeltaTable as Opened  # noqa: PLC0415

        if not Opened.is_deltatable(str(self._folder)):
            return None
        return Opened(str(self._folder))

    def _opened(self, schema: object) -> "Delta":
        from deltalake import DeltaTable as Opened  # noqa: PLC0415

        table = self._open()
        if table is not None:
            return table
        return Opened.create(
            str(self._folder),
            schema,
            # Another connector may have created it meanwhile.
            mode="ignore",
            partition_by=self._partition_by or None,
        )

    def _require_partitions(self, table: "Delta") -> None:
        there = list(table.metadata().partition_columns)
        if there != self._partition_by:
            raise ConnectorError(
                f"the table is partitioned by {', '.join(there) or 'nothing'}, the config says"
                f" {', '.join(self._partition_by) or 'nothing'}: name the same columns, or another"
                " table"
            )

    def _add_columns(self, table: "Delta", schema: object) -> None:
        there = {field.name: field.type for field in table.schema().fields}
        # A struct that has grown is passed as a whole, and merged with the fields of the table.
        new = [
            field
            for field in schema.fields  # type: ignore[attr-defined]
            if field.name not in there or _shape(field.type) != _shape(there[field.name])
        ]
        if new:
            table.alter.add_columns(new)
            table.update_incremental()


def _require_plain(name: str, table: "Delta") -> None:
    """Refuse a table with properties that constrain its rows in ways not supported here."""
    promises = [key for key in table.metadata().configuration if key.startswith(PROMISES)]
    for field in table.schema().fields:
        promises += [key for key in field.metadata if key.startswith("delta.")]
        promises += [] if field.nullable else [f"{field.name} NOT NULL"]
    if promises:
        raise ConnectorError(
            f"the Delta table {name} was made with {', '.join(promises)[:MAX_SHOWN_CHARS]}, which"
            " this connector does not look after: give a table without, or a new one"
        )


def _require_types(wanted: "Schema", there: "Schema") -> None:
    """Refuse a batch with types that readers of the table could not read."""
    known = {field.name.lower(): field for field in there.fields}
    for field in wanted.fields:
        other = known.get(field.name.lower())
        if other is None:
            continue
        if other.name != field.name or not _fits(_shape(field.type), _shape(other.type)):
            raise ConnectorError(
                f"the table has the column {other.name} of the type {_words(other)}, and the batch"
                f" {field.name} of the type {_words(field)}: give value.schema with the columns of"
                " the table, or another table"
            )


def _shape(type_: Any) -> Any:
    """Return a type as JSON, without parts that do not affect how values are written."""
    told = json.loads(type_.to_json()) if hasattr(type_, "to_json") else type_
    return _bare(told)


def _bare(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    if told["type"] == "struct":
        return {"struct": {one["name"]: _bare(one["type"]) for one in told["fields"]}}
    inner = ("elementType", "keyType", "valueType")
    return {told["type"]: [_bare(told[name]) for name in inner if name in told]}


def _fits(wanted: Any, there: Any) -> bool:
    """Return whether types are equal, except for struct fields that only one of them has."""
    if not isinstance(wanted, dict) or not isinstance(there, dict) or wanted.keys() != there.keys():
        return bool(wanted == there)
    if "struct" not in wanted:
        ((ours, theirs),) = ((wanted[kind], there[kind]) for kind in wanted)
        return all(_fits(one, other) for one, other in zip(ours, theirs, strict=True))
    fields = there["struct"]
    return all(_fits(one, fields.get(name, one)) for name, one in wanted["struct"].items())


def _words(field: Any) -> str:
    return json.dumps(_shape(field.type))[:MAX_SHOWN_CHARS]
