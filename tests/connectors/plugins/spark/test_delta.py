"""Batches that join a Delta table, of its own or of another program; without Spark."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from connectors.plugins.spark.batches import Batch, State, WrittenFile
from connectors.plugins.spark.delta import DeltaTable
from connectors.plugins.spark.tables import ParquetTable
from connectors.sdk.errors import ConnectorError
from tests.extras import requires

pytestmark = [requires("spark"), pytest.mark.slow]
STATE = State(app="app")


def struct(**columns: Any) -> dict[str, Any]:
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in columns.items()
    ]
    return {"type": "struct", "fields": fields}


def schema(**columns: Any) -> str:
    return json.dumps(struct(**columns), separators=(",", ":"))


def batch(
    folder: Path,
    rows: list[Mapping[str, Any]],
    told: str,
    *,
    inner: str = "",
    partition: Mapping[str, str | None] | None = None,
) -> Batch:
    """Write rows as a file in its place, as if Spark had."""
    path = f"{inner}{len(list(folder.rglob('*.parquet')))}.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / path)
    size = (folder / path).stat().st_size
    file = WrittenFile(staged=path, path=path, size=size, rows=len(rows), partition=partition or {})
    return Batch(spans=(), files=(file,), schema=told)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable as Delta  # noqa: PLC0415 - an extra

    found: list[dict[str, Any]] = Delta(str(folder)).to_pyarrow_table().to_pylist()
    return found


def test_a_batch_that_is_added_again_is_in_the_table_once(tmp_path: Path) -> None:
    made = batch(tmp_path, [{"id": 1}], schema(id="long"))

    for _ in range(2):
        DeltaTable(tmp_path, ()).add(STATE, made)

    assert rows_of(tmp_path) == [{"id": 1}]


def test_rows_of_folders_with_odd_names_are_found(tmp_path: Path) -> None:
    told = schema(id="long", name="string")
    table = DeltaTable(tmp_path, ("name",))
    for number, name in enumerate(["a/b", "50% ö", "a=b:c", None]):
        folder = {"a/b": "a%2Fb", "50% ö": "50%25 ö", "a=b:c": "a%3Db%3Ac"}.get(
            str(name), "__HIVE_DEFAULT_PARTITION__"
        )
        made = batch(
            tmp_path,
            [{"id": number}],
            told,
            inner=f"name={folder}/",
            partition={"name": name},
        )
        table.add(replace(STATE, number=number), made)

    found = {row["id"]: row["name"] for row in rows_of(tmp_path)}
    assert found == {0: "a/b", 1: "50% ö", 2: "a=b:c", 3: None}


def test_structs_grow_as_columns_do(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, ())
    first = schema(deep=struct(n="long"))
    table.add(STATE, batch(tmp_path, [{"deep": {"n": 1}}], first))
    second = schema(deep=struct(n="long", m="string"), more="long")
    table.require(second)
    table.add(
        replace(STATE, number=1),
        batch(tmp_path, [{"deep": {"n": 2, "m": "x"}, "more": 3}], second),
    )

    found = sorted(rows_of(tmp_path), key=lambda row: row["deep"]["n"])
    assert found == [
        {"deep": {"n": 1, "m": None}, "more": None},
        {"deep": {"n": 2, "m": "x"}, "more": 3},
    ]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": "string"}, 'the column id of the type "long"'),
        ({"ID": "long"}, "the column id"),
        ({"deep": struct(n="string")}, "the column deep"),
        ({"tags": {"type": "array", "elementType": "long", "containsNull": True}}, "column tags"),
    ],
)
def test_a_batch_that_readers_of_the_table_could_not_read_is_refused(
    tmp_path: Path, columns: dict[str, Any], said: str
) -> None:
    tags = {"type": "array", "elementType": "string", "containsNull": True}
    there = schema(id="long", deep=struct(n="long"), tags=tags)
    DeltaTable(tmp_path, ()).add(
        STATE, batch(tmp_path, [{"id": 1, "deep": {"n": 1}, "tags": ["a"]}], there)
    )

    with pytest.raises(ConnectorError, match=said):
        DeltaTable(tmp_path, ()).require(schema(**columns))
    DeltaTable(tmp_path, ()).require(there)


def test_what_does_not_fit_the_table_is_refused_before_it_is_written(tmp_path: Path) -> None:
    from deltalake import DeltaTable as Delta  # noqa: PLC0415
    from deltalake import Field, Schema  # noqa: PLC0415
    from deltalake.schema import PrimitiveType  # noqa: PLC0415

    strict = Schema([Field("id", PrimitiveType("long"), nullable=False)])
    Delta.create(str(tmp_path), strict)

    with pytest.raises(ConnectorError, match="id NOT NULL"):
        DeltaTable(tmp_path, ()).require(schema(id="long"))
    with pytest.raises(ConnectorError, match="partitioned by nothing"):
        DeltaTable(tmp_path, ("id",)).require(schema(id="long"))
    with pytest.raises(ConnectorError, match="is a Delta table"):
        ParquetTable(tmp_path).require(schema(id="long"))


def test_columns_that_delta_has_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="no such columns"):
        DeltaTable(tmp_path, ()).require(schema(id="interval day to second"))


def test_small_files_are_merged_beside_batches_and_no_row_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    told = schema(id="long", name="string")
    table, lines = DeltaTable(tmp_path, ("name",)), list[str]()
    for number in range(6):
        name = "a/b" if number % 2 else None
        inner = "name=a%2Fb/" if name else "name=__HIVE_DEFAULT_PARTITION__/"
        made = batch(tmp_path, [{"id": number}], told, inner=inner, partition={"name": name})
        table.add(replace(STATE, number=number), made)
    before = sorted(rows_of(tmp_path), key=lambda row: int(row["id"]))

    table.compact(4, lines.append)
    assert lines == []
    for _ in range(2):
        table.compact(3, lines.append)
    # The batch that was added last is added again, as after a kill.
    table.add(replace(STATE, number=5), made)

    assert sorted(rows_of(tmp_path), key=lambda row: int(row["id"])) == before
    assert [line.partition(", and")[0] for line in lines] == [
        f"merged 6 small files of {tmp_path.name} into 2"
    ]
    # Readers of an older version still find its files.
    assert len(list(tmp_path.rglob("*.parquet"))) == 8


def test_failed_merge_is_logged_and_fails_nothing(tmp_path: Path) -> None:
    table, lines = DeltaTable(tmp_path, ()), list[str]()
    for number in range(2):
        made = batch(tmp_path, [{"id": number}], schema(id="long"))
        table.add(replace(STATE, number=number), made)
    (tmp_path / "0.parquet").write_bytes(b"PAR1")

    table.compact(2, lines.append)

    assert len(lines) == 1
    assert "are not merged, a later batch tries again" in lines[0]
