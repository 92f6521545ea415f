"""What the config of a table may say; without Spark."""

import pytest

from connectors.plugins.spark import keys
from connectors.plugins.spark.sink import SparkSink
from connectors.sdk.testing import parse_config


def problems(**told: str) -> dict[str, str]:
    config = {name.replace("_", "."): value for name, value in told.items()}
    parsed = parse_config(SparkSink.definition(), {"table.path": "lake/orders", **config})
    return {one.name: one.errors[0] for one in SparkSink().validate(parsed)}


def test_an_iceberg_table_is_called_as_its_folder_unless_it_is_named() -> None:
    parsed = parse_config(SparkSink.definition(), {"table.path": "lake/orders"})

    assert keys.table_name(parsed) == ("default", "orders")
    assert keys.table_name({**parsed, "iceberg.table": "sold"}) == ("default", "sold")
    assert problems(table_format="iceberg") == {}


@pytest.mark.parametrize(
    ("told", "key", "said"),
    [
        ({"iceberg_table": "x"}, "iceberg.table", "Only an Iceberg table has a name"),
        (
            {"table_format": "iceberg", "table_path": "größe 100%"},
            "iceberg.table",
            "Give the table a name: größe 100%",
        ),
        (
            {"table_format": "iceberg", "table_path": "a#b/orders"},
            "table.path",
            "cut paths at #",
        ),
        (
            {"compact_min_files": "20"},
            "compact.min.files",
            "Files of a folder cannot be replaced at once, so readers would see rows twice",
        ),
        (
            {"compact_min_files": "20", "table_format": "iceberg"},
            "compact.min.files",
            "pyiceberg has no operation that replaces files of a table by merged ones: set",
        ),
    ],
)
def test_names_that_do_not_fit_are_refused_by_their_key(
    told: dict[str, str], key: str, said: str
) -> None:
    assert said in problems(**told)[key]
