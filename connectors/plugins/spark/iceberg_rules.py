"""Describes the properties of an Iceberg table, beside its columns, that matter to writers.

Imports pyiceberg, which is an extra, so that only functions import this module.
"""

from typing import Final

from pyiceberg.table.metadata import TableMetadata

from connectors.plugins.spark.iceberg_schemas import required_fields

# The newest that pyiceberg writes; a later one has row ids and column defaults.
MAX_VERSION: Final = 2
# Properties that ask more of writers than rows: encryption keys, classes to load.
FOREIGN: Final = ("encryption.", "py-io-impl", "write.py-location-provider.impl")


def folders_of(metadata: TableMetadata) -> list[str]:
    """Return the columns that a table is partitioned by, each with its transform."""
    schema = metadata.schema()
    found = []
    for field in metadata.spec().fields:
        name, transform = schema.find_column_name(field.source_id), str(field.transform)
        found.append(str(name) if transform == "identity" else f"{transform}({name})")
    return found


def promises(metadata: TableMetadata) -> list[str]:
    """Return the requirements of a table on its writers that this connector does not meet."""
    found = [f"{name} NOT NULL" for name in required_fields(metadata.schema())]
    found += [key for key in metadata.properties if key.startswith(FOREIGN)]
    if metadata.format_version > MAX_VERSION:
        found.append(f"format version {metadata.format_version}")
    if metadata.default_sort_order_id:
        found.append("a sort order")
    return found
