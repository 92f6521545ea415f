"""Spark sinks in a running home, whose worker and whose Java process are killed in the middle."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.scale import IS_LONG, count
from tests.suite.spark import SHORT_LIVED_JAVA

# Each costs a session of Spark.
KILLS = count(2, 2, long=20)
BATCH = 1500
# So many batches that the last kill still meets one.
RECORDS = (KILLS + 2) * BATCH
pytestmark = [
    requires("java", "spark"),
    pytest.mark.slow,
    pytest.mark.timeout(1200 if IS_LONG else 300),
]
SETTINGS = {
    "SAMSA_SPARK": "local[2]",
    "SAMSA_SPARK_UI": "true",
    "JDK_JAVA_OPTIONS": SHORT_LIVED_JAVA,
}
# As the kernel writes 127.0.0.1, for either family of addresses.
LOOPBACK = "0100007F"
LISTENS = "0A"
# A session takes five seconds on a calm machine, and batches have to follow.
PATIENCE_S = 180.0
# Where columns are found in the records, each batch is read twice.
ONE_READ = {"value.format": "string"}
# Between two looks at all rows of a table, which are read for it.
PAUSE_S = 0.5
# Where a Java process says whose child it is, and what it is.
JAVA = b"org.apache.spark.deploy.SparkSubmit"


def java_processes(home: Path) -> list[int]:
    """Return the Java processes of Spark that belong to a home."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            if JAVA in command and str(home).encode() in command:
                found.append(int(entry.name))
    return found


def parquet_numbers(folder: Path) -> Counter[int]:
    from pyarrow import parquet  # noqa: PLC0415 - an extra

    files = list(parquet_files(folder))
    return Counter(n for path in files for n in parquet.read_table(path)["_offset"].to_pylist())


def parquet_rows(folder: Path) -> int:
    """Return the number of rows, of which none is read."""
    from pyarrow import parquet  # noqa: PLC0415 - an extra

    return sum(parquet.read_metadata(path).num_rows for path in parquet_files(folder))


def parquet_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a table, without a look into what Spark is writing beside it."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "_samsa"]
        yield from (Path(where, name) for name in names if name.endswith(".parquet"))


def delta_numbers(folder: Path) -> Counter[int]:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    if not DeltaTable.is_deltatable(str(folder)):
        return Counter()
    return Counter(DeltaTable(str(folder)).to_pyarrow_table()["_offset"].to_pylist())


def iceberg_numbers(folder: Path) -> Counter[int]:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - an extra

    # Not before it is there, since the catalog would be made.
    path = folder.parent / "iceberg.db"
    if not path.exists():
        return Counter()
    with closing(SqlCatalog("samsa", uri=f"sqlite:///{path}")) as catalog:
        if not catalog.table_exists(("default", folder.name)):
            return Counter()
        rows = catalog.load_table(("default", folder.name)).scan().to_arrow()
    return Counter(rows["_offset"].to_pylist())


def sink(name: str, kind: str) -> dict[str, str]:
    return {
        "connector.class": "samsa.spark.sink",
        "topics": "orders",
        "table.path": name,
        "table.format": kind,
        "include.metadata": "true",
        "batch.max.records": str(BATCH),
        "errors.retry.delay.max.ms": "1000",
        "batch.max.wait.ms": "500",
    }


def wait_for_more(home: ConnectorsHome, records: int) -> None:
    """Wait until the lake has more rows, or all of them."""
    lake = home.folder / "files/lake"
    before = parquet_rows(lake)
    home.wait(
        lambda: parquet_rows(lake) > min(before, records - 1),
        f"rows behind {before}",
        seconds=PATIENCE_S,
    )


def require_each_once(
    home: ConnectorsHome, name: str, numbers: Callable[[Path], Counter[int]], records: int
) -> None:
    """Wait until a table has all rows; each is there once."""
    folder = home.folder / "files" / name

    def has_all() -> bool:
        threading.Event().wait(PAUSE_S)
        return len(numbers(folder)) >= records

    home.wait(has_all, f"all rows of {name}", seconds=PATIENCE_S)
    assert numbers(folder) == Counter(dict.fromkeys(range(records), 1))


def kill(home: ConnectorsHome, name: str, turn: int) -> None:
    """Kill the worker and the Java process, in turns."""
    if turn % 2 == 0:
        home.kill_worker_of(name)
        return
    home.wait(lambda: bool(java_processes(home.folder)), "Spark to be there", seconds=PATIENCE_S)
    for process in java_processes(home.folder):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def addresses_of(port: int) -> set[str]:
    """Return where a port of this machine listens, as the kernel writes it."""
    lines = [
        line.split()
        for family in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{family}").read_text(encoding="ascii").splitlines()[1:]
    ]
    local = [place for _, place, _, state, *_ in lines if state == LISTENS]
    return {place.partition(":")[0] for place in local if int(place.partition(":")[2], 16) == port}


def require_report(home: ConnectorsHome) -> None:
    """Wait until pages can tell what the worker that lives now does."""
    from connectors import worker_reports  # noqa: PLC0415 - Django is set up by now

    def told() -> list[worker_reports.Report]:
        return worker_reports.reports(home.cluster_id, worker_reports.SPARK)

    home.wait(
        lambda: [(one.told["stage"], one.is_silent) for one in told()] == [("running", False)],
        "a report of the worker",
    )
    (report,) = told()
    assert report.told["target"] == "local[2]"
    assert report.told["memory_bytes"] > 0
    pages = addresses_of(int(report.told["engine"]["ui_url"].rpartition(":")[2]))
    assert pages
    assert all(address.endswith(LOOPBACK) for address in pages)
    (task,) = home.tasks("to-lake")
    assert 0 < task.figures["last_batch"]["records"] <= BATCH


def test_each_row_lies_once_in_tables_of_all_formats_whatever_is_killed(tmp_path: Path) -> None:
    with connectors_home(tmp_path, environment=SETTINGS) as home:
        source = {
            "connector.class": "samsa.datagen",
            "topic": "orders",
            "records.per.second": "1000",
            "iterations": str(RECORDS),
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }
        home.create("orders-source", source)
        tables = {"lake": parquet_numbers, "delta": delta_numbers, "iceberg": iceberg_numbers}
        home.create("to-lake", sink("lake", "parquet"))
        home.create("to-delta", {**sink("delta", "delta"), **ONE_READ})
        home.create("to-iceberg", {**sink("iceberg", "iceberg"), **ONE_READ})
        for turn in range(KILLS):
            wait_for_more(home, RECORDS)
            kill(home, "to-lake", turn)
        for name, numbers in tables.items():
            require_each_once(home, name, numbers, RECORDS)
        require_report(home)
        assert {task.worker.partition(".")[0] for task in home.tasks("to-lake")} == {
            "connect-spark"
        }
