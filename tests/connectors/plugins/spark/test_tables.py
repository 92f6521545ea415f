"""Files of a batch on their way into a table, without Spark."""

from pathlib import Path

import pytest

from connectors.plugins.spark import tables
from connectors.plugins.spark.batches import WrittenFile
from connectors.sdk.errors import ConnectorError

FILE = WrittenFile(
    staged="x/day=1/0.parquet", path="day=1/0.parquet", size=4, rows=1, partition={"day": "1"}
)


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_staged_files_are_durable_with_each_folder_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staging = tmp_path / "staging"
    put(staging / FILE.staged, b"rows")
    synced: list[Path] = []
    for name in ("sync_file", "sync_folder"):
        monkeypatch.setattr(tables, name, synced.append)

    tables.sync_staged([FILE], staging)

    ours = [staging / FILE.staged, staging / "x/day=1", staging / "x", staging]
    assert set(synced) == set(ours)


def test_a_file_in_its_place_stays_whatever_is_left_in_the_staging(tmp_path: Path) -> None:
    staging, table = tmp_path / "staging", tmp_path / "table"
    put(staging / FILE.staged, b"")
    put(table / FILE.path, b"rows")

    assert not tables.revert_if_damaged([FILE], staging, table)
    tables.move([FILE], staging, table)

    assert (table / FILE.path).read_bytes() == b"rows"


@pytest.mark.parametrize(
    ("log", "read", "kind"),
    [
        ("lake/_delta_log/0.json", "lake", "a Delta table"),
        ("lake/metadata/0.metadata.json", "lake", "an Iceberg table"),
        ("lake/metadata/0.metadata.json", "lake/data", "an Iceberg table"),
        ("lake/data/metadata/0.metadata.json", "lake/data", "an Iceberg table"),
    ],
)
def test_a_folder_whose_files_a_log_chooses_from_is_not_read_as_files(
    tmp_path: Path, log: str, read: str, kind: str
) -> None:
    put(tmp_path / log, b"{}")
    (tmp_path / read).mkdir(parents=True, exist_ok=True)

    with pytest.raises(ConnectorError, match=f"{read} belongs to {kind}.*table.format parquet"):
        tables.require_no_log(tmp_path / read, read)


def test_folders_of_files_are_read_whatever_they_are_called(tmp_path: Path) -> None:
    put(tmp_path / "data/0.parquet", b"rows")

    tables.require_no_log(tmp_path / "data", "data")
