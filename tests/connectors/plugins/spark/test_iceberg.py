"""Batches that join an Iceberg table, of their own or of others; without Spark."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from connectors.plugins.spark.batches import Batch, State, WrittenFile
from connectors.plugins.spark.delta import DeltaTable
from connectors.plugins.spark.iceberg import IcebergTable, Identifier
from connectors.plugins.spark.sink import JOB_CHARS, SparkSink, SparkSinkTask
from connectors.plugins.spark.state import StateFile
from connectors.plugins.spark.tables import ParquetTable
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.testing import parse_config
from tests.connectors.plugins.spark.jobs import JobContext
from tests.extras import requires

pytestmark = [requires("spark"), pytest.mark.slow]
STATE = State(app="app")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # As a home may be called, and no URL.
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path / "größe 100%"))
    return tmp_path / "größe 100%" / "files" / "lake"


def table(
    folder: Path, *folders: str, name: str = "lake", log: Callable[[str], None] = print
) -> IcebergTable:
    identifier = Identifier(namespace="default", name=name)
    return IcebergTable(folder, folders, identifier, "to-lake", log)


def struct(**columns: Any) -> dict[str, Any]:
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in columns.items()
    ]
    return {"type": "struct", "fields": fields}


def schema(**columns: Any) -> str:
    return json.dumps(struct(**columns), separators=(",", ":"))


def batch(folder: Path, told: str, *files: Sequence[Mapping[str, Any]]) -> Batch:
    """Write rows as files in their place, as if Spark had."""
    written = []
    for rows in files:
        path = f"{len(list(folder.rglob('*.parquet')))}.parquet"
        (folder / "data").mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "data" / path)
        size = (folder / "data" / path).stat().st_size
        written.append(WrittenFile(staged=path, path=path, size=size, rows=len(rows), partition={}))
    return Batch(spans=(), files=tuple(written), schema=told)


@contextmanager
def others(folder: Path) -> Iterator[Any]:
    """Lend the catalog as programs open it that know nothing of Samsa."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - an extra

    folder.parent.mkdir(parents=True, exist_ok=True)
    with closing(SqlCatalog("samsa", uri=f"sqlite:///{folder.parent / 'iceberg.db'}")) as catalog:
        catalog.create_namespace_if_not_exists("default")
        yield catalog


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    with others(folder) as catalog:
        yield catalog.load_table("default.lake")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    with opened(folder) as table:
        found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def made_by_others(folder: Path, *fields: Any, **more: Any) -> None:
    from pyiceberg.schema import Schema  # noqa: PLC0415

    with others(folder) as catalog:
        catalog.create_table(
            "default.lake", Schema(*fields), **{"location": f"file://{folder}", **more}
        )


def edit_metadata(folder: Path, more: Mapping[str, Any]) -> None:
    """Write into the only file of metadata what pyiceberg does not write by itself."""
    (path,) = folder.glob("metadata/*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def test_a_batch_that_is_added_again_is_in_the_table_once(folder: Path) -> None:
    made = batch(folder, schema(id="long"), [{"id": 1}], [{"id": 2}])

    for _ in range(2):
        table(folder).add(STATE, made)

    assert sorted(row["id"] for row in rows_of(folder)) == [1, 2]


def test_a_snapshot_tells_whose_batch_it_is(folder: Path) -> None:
    state = replace(STATE, number=7, epoch=3)
    table(folder).add(state, batch(folder, schema(id="long"), [{"id": 1}]))

    with opened(folder) as table_:
        found = table_.current_snapshot().summary.additional_properties
    told = {name: value for name, value in found.items() if name.startswith("samsa.")}
    assert told == {
        "samsa.connector": "to-lake",
        "samsa.job": "app",
        "samsa.epoch": "3",
        "samsa.batch": "7",
    }


class Ended(BaseException):
    """The worker is killed: nothing catches it, and nothing is put in order."""


def test_a_worker_that_ends_between_any_two_steps_leaves_each_row_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from connectors.plugins.spark import iceberg_catalog  # noqa: PLC0415 - an extra

    left = [0]

    def step() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Ended

    close, commit = iceberg_catalog.DurableFile.close, iceberg_catalog.HomeCatalog.commit_table

    def closes(self: Any) -> None:
        is_open = not self.closed
        close(self)
        if is_open:
            step()

    def commits(*arguments: Any) -> Any:
        answer = commit(*arguments)
        step()
        return answer

    monkeypatch.setattr(iceberg_catalog.DurableFile, "close", closes)
    monkeypatch.setattr(iceberg_catalog.HomeCatalog, "commit_table", commits)
    first = batch(folder, schema(id="long"), [{"id": 1}], [{"id": 2}])
    second = batch(folder, schema(id="long", name="string"), [{"id": 3, "name": "a"}])

    ends = 0
    for number, made in enumerate((first, second)):
        for steps in range(20):
            left[0] = steps
            try:
                table(folder).require(made.schema)
                table(folder).add(replace(STATE, number=number), made)
            except Ended:
                ends += 1
                continue
            break

    assert [row["id"] for row in rows_of(folder)] == [1, 2, 3]
    # Behind the manifest, the list of them, the metadata and the catalog of a batch; and the first
    # time behind the metadata of a table that is made.
    assert ends == 8


def between(
    monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None], *, times: int = 1
) -> None:
    """Have something happen between the look at a table and the commit."""
    found = IcebergTable._commit  # noqa: SLF001
    left = [times]

    def commits(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            happens()
        found(*arguments)

    monkeypatch.setattr(IcebergTable, "_commit", commits)


def append(folder: Path, number: int) -> None:
    with opened(folder) as table_:
        table_.append(pyarrow.Table.from_pylist([{"id": number}]))


def test_a_batch_and_what_another_writer_commits_meanwhile_are_both_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(folder).add(STATE, batch(folder, schema(id="long"), [{"id": 1}]))
    between(monkeypatch, lambda: append(folder, 9))

    table(folder).add(replace(STATE, number=1), batch(folder, schema(id="long"), [{"id": 2}]))

    assert [row["id"] for row in rows_of(folder)] == [1, 2, 9]


def test_a_batch_that_its_former_owner_commits_meanwhile_is_there_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(folder).add(STATE, batch(folder, schema(id="long"), [{"id": 1}]))
    state, made = replace(STATE, number=1), batch(folder, schema(id="long"), [{"id": 2}])
    between(monkeypatch, lambda: table(folder).add(state, made))

    table(folder).add(state, made)

    assert [row["id"] for row in rows_of(folder)] == [1, 2]


def test_a_batch_is_tried_later_where_others_are_always_faster(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(folder).add(STATE, batch(folder, schema(id="long"), [{"id": 1}]))
    between(monkeypatch, lambda: append(folder, 9), times=100)

    with pytest.raises(RetriableError, match="others committed before it"):
        table(folder).add(replace(STATE, number=1), batch(folder, schema(id="long"), [{"id": 2}]))


def test_folders_that_change_meanwhile_end_the_task_before_the_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(folder).add(STATE, batch(folder, schema(id="long"), [{"id": 1}]))

    def divides() -> None:
        with opened(folder) as table_, table_.update_spec() as change:
            change.add_identity("id")
        append(folder, 9)

    between(monkeypatch, divides)
    with pytest.raises(ConnectorError, match="partitioned by id, the config says nothing"):
        table(folder).add(replace(STATE, number=1), batch(folder, schema(id="long"), [{"id": 2}]))

    assert [row["id"] for row in rows_of(folder)] == [1, 9]


@pytest.mark.parametrize("is_expired", [True, False])
def test_a_batch_is_known_whatever_others_clear_away(folder: Path, is_expired: bool) -> None:
    made = batch(folder, schema(id="long"), [{"id": 1}])
    table(folder).add(STATE, made)
    append(folder, 9)
    with opened(folder) as table_:
        if is_expired:
            table_.maintenance.expire_snapshots().by_id(table_.snapshots()[0].snapshot_id).commit()
        else:
            table_.transaction().remove_properties("samsa.batch.app").commit_transaction()

    table(folder).add(STATE, made)

    assert [row["id"] for row in rows_of(folder)] == [1, 9]


def test_a_batch_that_was_written_for_another_format_waits_for_that(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No cluster is needed to publish what was written before.
    monkeypatch.setattr(JobContext, "bounds", lambda _: {})
    monkeypatch.setattr(JobContext, "topic_ids", lambda *_: {})
    context = JobContext(bootstrap="none:1", topic="orders")
    told = {"table.path": "lake", "value.schema": "id BIGINT"}
    job = sha256(context.connector.encode()).hexdigest()[:JOB_CHARS]
    file = WrittenFile(staged="x/1.parquet", path="1.parquet", size=1, rows=1, partition={})
    written = Batch(spans=(), files=(file,), schema=schema(id="long"))
    StateFile(folder, job).write(replace(STATE, batch=written))

    task = SparkSinkTask()
    parsed = parse_config(SparkSink.definition(), {**told, "table.format": "iceberg"})
    task.start(context, parsed)

    with pytest.raises(ConnectorError, match=r"written for another table\.format"):
        task.run()


def test_columns_and_structs_grow(folder: Path) -> None:
    first = schema(id="long", deep=struct(n="long"))
    table(folder).add(STATE, batch(folder, first, [{"id": 1, "deep": {"n": 1}}]))
    second = schema(id="long", deep=struct(n="long", m="string"), more="long")
    table(folder).require(second)
    rows = [{"id": 2, "deep": {"n": 2, "m": "x"}, "more": 3}]
    table(folder).add(replace(STATE, number=1), batch(folder, second, rows))

    assert rows_of(folder) == [{"id": 1, "deep": {"n": 1, "m": None}, "more": None}, *rows]


ARRAY = {"type": "array", "elementType": "long", "containsNull": True}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": "string"}, "the column id of the type long"),
        ({"ID": "long"}, "the column id"),
        ({"deep": struct(n="string")}, "the column deep"),
        ({"deep": struct(N="long")}, "the column deep"),
        ({"tags": ARRAY}, "the column tags"),
        ({"id": "interval day to second"}, "no columns of the type interval"),
        ({"id": {"type": "udt"}}, "no columns of the type udt"),
        ({"_Partition": "long"}, "_Partition is the name of a column that Iceberg adds"),
    ],
)
def test_a_batch_that_readers_of_the_table_could_not_read_is_refused(
    folder: Path, columns: dict[str, Any], said: str
) -> None:
    there = schema(id="long", deep=struct(n="long"), tags={**ARRAY, "elementType": "string"})
    rows = [{"id": 1, "deep": {"n": 1}, "tags": ["a"]}]
    table(folder).add(STATE, batch(folder, there, rows))

    with pytest.raises(ConnectorError, match=said):
        table(folder).require(schema(**columns))
    table(folder).require(there)


@pytest.mark.parametrize("is_renamed", [True, False])
def test_a_name_that_means_another_column_in_files_that_are_there_is_refused(
    folder: Path, is_renamed: bool
) -> None:
    there = schema(id="long", name="string")
    table(folder).add(STATE, batch(folder, there, [{"id": 1, "name": "a"}]))
    with opened(folder) as table_, table_.update_schema() as change:
        if is_renamed:
            change.rename_column("name", "title")
        else:
            change.delete_column("name")

    with pytest.raises(ConnectorError, match="the name name in files to another column"):
        table(folder).require(there)
    table(folder).require(schema(id="long", other="string"))


def test_a_table_of_others_is_added_to(folder: Path) -> None:
    from pyiceberg.types import LongType, NestedField  # noqa: PLC0415

    made_by_others(folder, NestedField(5, "id", LongType(), required=False))
    append(folder, 9)

    told = schema(id="long", name="string")
    table(folder).require(told)
    table(folder).add(STATE, batch(folder, told, [{"id": 1, "name": "a"}]))
    with opened(folder) as table_:
        table_.delete("id = 9")
    table(folder).add(replace(STATE, number=1), batch(folder, told, [{"id": 2, "name": "b"}]))

    assert rows_of(folder) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_what_a_table_of_others_asks_of_writers_is_refused(folder: Path) -> None:
    from pyiceberg.table.sorting import SortField, SortOrder  # noqa: PLC0415
    from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415
    from pyiceberg.types import LongType, NestedField, StringType  # noqa: PLC0415

    made_by_others(
        folder,
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "name", StringType(), required=False),
        sort_order=SortOrder(SortField(source_id=1, transform=IdentityTransform())),
        properties={"encryption.key-id": "k"},
    )
    edit_metadata(folder, {"format-version": 3, "next-row-id": 0})

    said = r"id NOT NULL, encryption\.key-id, format version 3, a sort order"
    with pytest.raises(ConnectorError, match=said):
        table(folder).require(schema(id="long"))


def test_folders_of_a_table_are_those_of_the_config(folder: Path) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: PLC0415
    from pyiceberg.transforms import BucketTransform  # noqa: PLC0415
    from pyiceberg.types import LongType, NestedField  # noqa: PLC0415

    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "by_id"))
    made_by_others(folder, NestedField(1, "id", LongType(), required=False), partition_spec=spec)

    with pytest.raises(
        ConnectorError, match=r"partitioned by bucket\[4\]\(id\), the config says id"
    ):
        table(folder, "id").require(schema(id="long"))
    with pytest.raises(ConnectorError, match=r"partition\.by names at of the type double"):
        table(folder, "at").require(schema(at="double"))


def test_classes_that_a_table_names_are_not_loaded(folder: Path) -> None:
    from pyiceberg.types import LongType, NestedField  # noqa: PLC0415

    made_by_others(folder, NestedField(1, "id", LongType(), required=False))
    classes = {"py-io-impl": "this.X", "write.py-location-provider.impl": "this.Y"}
    edit_metadata(folder, {"properties": classes})

    with pytest.raises(ConnectorError, match=r"py-io-impl, write\.py-location-provider\.impl"):
        table(folder).require(schema(id="long"))
    assert "this" not in sys.modules


def test_nothing_outside_of_the_homes_files_is_opened(folder: Path, tmp_path: Path) -> None:
    from connectors.plugins.spark.iceberg_catalog import HomeFile, location_of  # noqa: PLC0415

    assert HomeFile(location_of(folder)).exists() is False
    assert HomeFile(f"file:{folder}").exists() is False
    (folder.parent / "out").parent.mkdir(parents=True)
    (folder.parent / "out").symlink_to(tmp_path)
    for location in (
        "/etc/passwd",
        f"file://{folder}/../../vault.key",
        f"file://host{folder}",
        f"//host{folder}",
        "s3://bucket/x",
        "http://localhost/x",
        f"{folder.parent}/out/x",
    ):
        with pytest.raises(ConnectorError, match="is outside of"):
            HomeFile(location)


def test_a_name_that_another_folder_has_is_refused(folder: Path) -> None:
    told = schema(id="long")
    table(folder).add(STATE, batch(folder, told, [{"id": 1}]))

    with pytest.raises(ConnectorError, match=r"default\.lake is a table in"):
        table(folder.parent / "other").require(told)


def test_a_folder_whose_table_the_catalog_does_not_know_is_refused(folder: Path) -> None:
    told = schema(id="long")
    table(folder).add(STATE, batch(folder, told, [{"id": 1}]))

    with pytest.raises(ConnectorError, match=r"iceberg\.db does not know as default\.other"):
        table(folder, name="other").require(told)


def test_folders_of_other_formats_are_refused(tmp_path: Path, folder: Path) -> None:
    told = schema(id="long")
    table(folder).add(STATE, batch(folder, told, [{"id": 1}]))
    delta = folder.parent / "delta"
    (delta / "_delta_log").mkdir(parents=True)

    with pytest.raises(ConnectorError, match="is an Iceberg table"):
        ParquetTable(folder).require(told)
    with pytest.raises(ConnectorError, match="is an Iceberg table"):
        DeltaTable(folder, ()).require(told)
    with pytest.raises(ConnectorError, match="is a Delta table"):
        table(delta, name="delta").require(told)


def test_a_catalog_that_is_no_catalog_says_so(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder.parent / "iceberg.db").write_text("lines of a file sink\n" * 100)

    with pytest.raises(ConnectorError, match=r"iceberg\.db: file is not a database; put a copy"):
        table(folder).require(schema(id="long"))


def test_a_table_whose_files_are_gone_says_so(folder: Path) -> None:
    told = schema(id="long")
    table(folder).add(STATE, batch(folder, told, [{"id": 1}]))
    shutil.rmtree(folder)

    with pytest.raises(ConnectorError, match="is gone"):
        table(folder).require(told)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a table keep three snapshots, and clear the others by two."""
    from connectors.plugins.spark import iceberg, iceberg_expiry  # noqa: PLC0415

    properties = {
        **iceberg.PROPERTIES,
        "samsa.snapshots.kept": "3",
        "commit.manifest.min-count-to-merge": "3",
        "write.metadata.previous-versions-max": "2",
    }
    monkeypatch.setattr(iceberg, "PROPERTIES", properties)
    monkeypatch.setattr(iceberg_expiry, "MORE", 2)


def add(folder: Path, *numbers: int) -> None:
    told = schema(id="long")
    for number in numbers:
        made = batch(folder, told, [{"id": number}])
        table(folder).add(replace(STATE, number=number), made)


@pytest.mark.usefixtures("few")
def test_old_snapshots_and_their_files_are_cleared_away(folder: Path) -> None:
    add(folder, *range(12))

    assert [row["id"] for row in rows_of(folder)] == list(range(12))
    with opened(folder) as table_:
        assert len(table_.snapshots()) < 5
        lists = {one.manifest_list for one in table_.snapshots()}
        parts = {p.manifest_path for one in table_.snapshots() for p in one.manifests(table_.io)}
        assert len(table_.current_snapshot().manifests(table_.io)) < 6
    there = {f"file://{path}" for path in folder.glob("metadata/*.avro")}
    assert {path for path in there if "/snap-" in path} == lists
    # The library leaves the manifest of a batch that it merges at once.
    assert len(there - lists - parts) < 12 / 2
    assert len(list(folder.glob("metadata/*.json"))) <= 3


@pytest.mark.usefixtures("few")
def test_files_that_a_list_of_others_names_elsewhere_are_not_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.table.snapshots import Snapshot  # noqa: PLC0415 - an extra

    from connectors.plugins.spark import iceberg_expiry  # noqa: PLC0415 - an extra

    expire, manifests = iceberg_expiry.expire, Snapshot.manifests
    precious = folder.parent / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("of a file sink")
    places = [f"file://{folder}/data/0.parquet", f"file://{precious}", "s3://bucket/list.avro"]

    def expire_forged(table_: Any) -> None:
        oldest = table_.snapshots()[0].snapshot_id

        def named(self: Any, io: Any) -> list[Any]:
            more = places if self.snapshot_id == oldest else []
            return [*manifests(self, io), *(SimpleNamespace(manifest_path=at) for at in more)]

        with monkeypatch.context() as forged:
            forged.setattr(Snapshot, "manifests", named)
            expire(table_)

    monkeypatch.setattr(iceberg_expiry, "expire", expire_forged)
    add(folder, *range(5))

    assert precious.exists()
    assert [row["id"] for row in rows_of(folder)] == list(range(5))
    with opened(folder) as table_:
        assert len(table_.snapshots()) == 3


@pytest.mark.usefixtures("few")
def test_a_batch_is_done_though_old_snapshots_cannot_be_cleared_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from connectors.plugins.spark import iceberg_expiry  # noqa: PLC0415 - an extra

    def fail(_: object) -> None:
        raise ValueError("no list")

    monkeypatch.setattr(iceberg_expiry, "expire", fail)
    told, lines = schema(id="long"), list[str]()

    table(folder, log=lines.append).add(STATE, batch(folder, told, [{"id": 1}]))

    assert [row["id"] for row in rows_of(folder)] == [1]
    said = "old snapshots of default.lake stay, a later batch tries again: ValueError: no list"
    assert lines == [said]


@pytest.mark.usefixtures("few")
def test_snapshots_that_have_rows_which_were_deleted_stay(folder: Path) -> None:
    add(folder, 0, 1)
    with opened(folder) as table_:
        table_.delete("id = 0")
        before = table_.snapshots()[1].snapshot_id
    add(folder, *range(2, 9))

    assert [row["id"] for row in rows_of(folder)] == list(range(1, 9))
    with opened(folder) as table_:
        assert table_.snapshots()[0].snapshot_id == before
        assert len(table_.snapshots()) == 9
        assert table_.scan(snapshot_id=before).count() == 2


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("is_tagged", [True, False])
def test_a_table_of_which_others_keep_snapshots_keeps_all(folder: Path, is_tagged: bool) -> None:
    add(folder, 0)
    with opened(folder) as table_:
        if is_tagged:
            table_.manage_snapshots().create_tag(
                table_.current_snapshot().snapshot_id, "audit"
            ).commit()
        else:
            table_.transaction().remove_properties("samsa.snapshots.kept").commit_transaction()
    add(folder, *range(1, 7))

    with opened(folder) as table_:
        assert len(table_.snapshots()) == 7
