"""Writes an Iceberg table by pyiceberg, without a JAR: each batch is one numbered snapshot."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connectors.plugins.spark.batches import Batch, State
from connectors.plugins.spark.tables import ICEBERG_DATA, has_iceberg
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.home_files import CATALOG, DELTA_LOG, ICEBERG_METADATA

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table as Opened

    from connectors.plugins.spark.iceberg_catalog import HomeCatalog

# Properties of a table that was made here, and of the job's last batch in any table.
MADE: Final = "samsa.made-by"
LAST_BATCH: Final = "samsa.batch."
# Properties of a snapshot.
CONNECTOR, JOB, EPOCH, NUMBER = "samsa.connector", "samsa.job", "samsa.epoch", "samsa.batch"
# Iceberg numbers partition fields from here on.
FIRST_FIELD_ID: Final = 1000
# Another writer may commit first each time; a later slice tries again.
MAX_TRIES: Final = 5
# Limits the list of names in a message.
MAX_SHOWN_CHARS: Final = 300
# The newest that pyiceberg writes.
VERSION: Final = 2
# A commit every ten seconds would leave as many files of metadata, each with all snapshots, and
# lists with a line for each commit. A quarter of an hour of both suffices for readers by path.
PROPERTIES: Final[Mapping[str, str]] = {
    "format-version": str(VERSION),
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "samsa.snapshots.kept": "100",
    MADE: "samsa.spark",
}
# pyiceberg's own retry would not look for the batch in commits made in between.
RETRIES: Final = "commit.retry.num-retries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """The name of the table in the catalog."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


class IcebergTable:
    keeps_columns = True

    def __init__(
        self,
        folder: Path,
        folders: tuple[str, ...],
        identifier: Identifier,
        connector: str,
        log: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self.files = folder / ICEBERG_DATA
        self._folders = folders
        self._identifier = identifier
        self._connector = connector
        self._log = log

    def require(self, schema: str) -> None:
        from connectors.plugins.spark import iceberg_schemas  # noqa: PLC0415 - an extra

        wanted = iceberg_schemas.schema_of(schema)
        iceberg_schemas.require_folders(wanted, self._folders)
        if (self._folder / DELTA_LOG).exists():
            raise ConnectorError(
                f"{self._folder.name} is a Delta table: set table.format to delta, or give another"
                " folder"
            )
        with self._catalog() as catalog:
            table = catalog.found(self._key)
            if table is None:
                self._require_new()
            else:
                self._require(table, wanted)

    def add(self, state: State, batch: Batch) -> None:
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 - an extra

        from connectors.plugins.spark import iceberg_schemas  # noqa: PLC0415

        if not batch.files:
            return
        wanted = iceberg_schemas.schema_of(batch.schema)
        with self._catalog() as catalog:
            for _ in range(MAX_TRIES):
                # A commit in between may already contain this very batch.
                table = self._opened(catalog, wanted)
                if _last_batch(table, state.app) >= state.number:
                    return
                self._require(table, wanted)
                try:
                    self._commit(table, wanted, state, batch)
                except CommitFailedException:
                    continue
                self._expire(catalog)
                return
        raise RetriableError(
            f"the Iceberg table {self._identifier} did not take batch {state.number}: others"
            f" committed before it, {MAX_TRIES} times in a row"
        )

    def _expire(self, catalog: "HomeCatalog") -> None:
        """Remove old snapshots; log any failure and go on, since the batch is committed."""
        from connectors.plugins.spark import iceberg_expiry  # noqa: PLC0415

        try:
            iceberg_expiry.expire(catalog.load_table(self._key))
        # Files that others may have written raise classes of the library and of its parsers.
        except Exception as error:  # noqa: BLE001
            shown = f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]
            self._log(
                f"old snapshots of {self._identifier} stay, a later batch tries again: {shown}"
            )

    @property
    def _key(self) -> tuple[str, str]:
        return self._identifier.namespace, self._identifier.name

    @contextmanager
    def _catalog(self) -> Iterator["HomeCatalog"]:
        from sqlalchemy.exc import DBAPIError, OperationalError  # noqa: PLC0415 - an extra

        from connectors.plugins.spark.iceberg_catalog import catalog  # noqa: PLC0415

        said = f"the Iceberg table {self._identifier} cannot be used:"
        try:
            with catalog() as opened:
                yield opened
        except ConnectorError:
            raise
        except FileNotFoundError as error:
            raise ConnectorError(
                f"{said} {error.filename or error} is gone; put it back, or remove the table from"
                f" its catalog {CATALOG}"
            ) from error
        except OperationalError as error:
            raise RetriableError(f"{said} its catalog {CATALOG}: {error.orig}") from error
        except DBAPIError as error:
            raise ConnectorError(
                f"{said} its catalog {CATALOG}: {error.orig}; put a copy of it back, or remove it"
                " and register the tables again"
            ) from error
        except OSError as error:
            raise RetriableError(f"{said} {error}") from error
        # Files that others may have written raise classes of the library and of its parsers.
        except Exception as error:
            shown = f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]
            raise ConnectorError(f"{said} {shown}") from error

    def _opened(self, catalog: "HomeCatalog", wanted: "Schema") -> "Opened":
        from pyiceberg.exceptions import TableAlreadyExistsError  # noqa: PLC0415

        from connectors.plugins.spark.iceberg_catalog import location_of  # noqa: PLC0415

        table = catalog.found(self._key)
        if table is None:
            self._require_new()
            catalog.create_namespace_if_not_exists(self._identifier.namespace)
            try:
                table = catalog.create_table(
                    self._key,
                    wanted,
                    location=location_of(self._folder),
                    partition_spec=self._spec(wanted),
                    properties=dict(PROPERTIES),
                )
            except TableAlreadyExistsError:
                # Another connector has created it meanwhile.
                table = catalog.load_table(self._key)
        return table

    def _spec(self, schema: "Schema") -> "PartitionSpec":
        from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: PLC0415
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415

        return PartitionSpec(
            *(
                PartitionField(
                    source_id=schema.find_field(name).field_id,
                    field_id=FIRST_FIELD_ID + index,
                    transform=IdentityTransform(),
                    name=name,
                )
                for index, name in enumerate(self._folders)
            )
        )

    def _require_new(self) -> None:
        """Refuse a folder with a table that the catalog does not know."""
        from connectors.plugins.spark.iceberg_catalog import HomeFile  # noqa: PLC0415

        if not has_iceberg(self._folder):
            return

        from pyiceberg.serializers import FromInputFile  # noqa: PLC0415

        for path in sorted((self._folder / ICEBERG_METADATA).glob("*.metadata.json")):
            metadata = FromInputFile.table_metadata(HomeFile(str(path)))
            # A table whose creation a worker's end interrupted has nothing in it.
            if metadata.snapshots or MADE not in metadata.properties:
                raise ConnectorError(
                    f"{self._folder.name} holds an Iceberg table that {CATALOG} does not know as"
                    f" {self._identifier}: register it there, set iceberg.namespace and"
                    " iceberg.table to its names, or give another folder"
                )

    def _require(self, table: "Opened", wanted: "Schema") -> None:
        """Refuse a table in another folder, or one with features beyond columns and folders."""
        from connectors.plugins.spark import iceberg_rules, iceberg_schemas  # noqa: PLC0415
        from connectors.plugins.spark.iceberg_catalog import path_of  # noqa: PLC0415

        metadata = table.metadata
        place = path_of(metadata.location)
        if place != self._folder:
            raise ConnectorError(
                f"{self._identifier} is a table in {place} already: set iceberg.table to another"
                " name, or table.path to that folder"
            )
        there = iceberg_rules.folders_of(metadata)
        if there != list(self._folders):
            raise ConnectorError(
                f"the table is partitioned by {', '.join(there) or 'nothing'}, the config says"
                f" {', '.join(self._folders) or 'nothing'}: name the same columns, or another table"
            )
        if promises := iceberg_rules.promises(metadata):
            raise ConnectorError(
                f"the Iceberg table {self._identifier} was made with"
                f" {', '.join(promises)[:MAX_SHOWN_CHARS]}, which this connector does not look"
                " after: give a table without, or a new one"
            )
        schema = metadata.schema()
        iceberg_schemas.require_types(wanted, schema)
        iceberg_schemas.require_names(wanted, schema, metadata.name_mapping())

    def _commit(self, table: "Opened", wanted: "Schema", state: State, batch: Batch) -> None:
        """Commit new columns, the files and the number of the batch as one change."""
        assert batch.files is not None, "it was written"
        # Only a local copy: a commit applies to the table in the catalog. The library copies all
        # metadata about twenty times, so this copy has the last snapshot only.
        last = table.metadata.current_snapshot()
        known = {
            "properties": {**table.metadata.properties, RETRIES: "0"},
            "snapshots": [] if last is None else [last],
            "snapshot_log": [],
        }
        table.metadata = table.metadata.model_copy(update=known)
        location = f"{table.metadata.location.rstrip('/')}/{ICEBERG_DATA}"
        with table.transaction() as transaction:
            with transaction.update_schema() as change:
                change.union_by_name(wanted)
            transaction.set_properties({f"{LAST_BATCH}{state.app}": str(state.number)})
            transaction.add_files(
                [f"{location}/{file.path}" for file in batch.files],
                snapshot_properties={
                    CONNECTOR: self._connector,
                    JOB: state.app,
                    EPOCH: str(state.epoch),
                    NUMBER: str(state.number),
                },
                # The number of the batch rules out duplicates; a search would read all manifests.
                check_duplicate_files=False,
            )


def _last_batch(table: "Opened", job: str) -> int:
    """Return the number of a job's last batch in a table; -1 if there is none.

    Each batch writes it to a snapshot and to a property, since others may remove either.
    """
    found = [int(table.properties.get(f"{LAST_BATCH}{job}", -1))]
    for snapshot in table.metadata.snapshots:
        told = snapshot.summary.additional_properties if snapshot.summary else {}
        if told.get(JOB) == job:
            found.append(int(told[NUMBER]))
    return max(found)
