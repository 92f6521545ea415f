"""Every connector that is built in keeps the contract; and what breaks it is found."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest

from connectors import plugins, registry
from connectors.plugins.file.sink import FileSink
from connectors.plugins.file.source import FileSource
from connectors.plugins.postgres.sink import PostgresSink
from connectors.plugins.postgres.source import PostgresSource
from connectors.sdk import contract, home_files
from connectors.sdk.configs import Definition, Importance, Key, Kind
from connectors.sdk.connector import Connector
from connectors.sdk.testing import sink_record
from tests.extras import requires
from tests.suite.services import shared_postgres

# The shortest config of each, whose targets nobody may reach.
CONFIGS: dict[str, dict[str, str]] = {
    "samsa.datagen": {"topic": "made"},
    "samsa.file.sink": {"file": "lines"},
    "samsa.file.source": {"file": "lines", "topic": "t"},
    "samsa.http.sink": {"http.url": "http://127.0.0.1:1/x"},
    "samsa.postgres.capture": {
        "database.hostname": "127.0.0.1",
        "database.port": "1",
        "database.user": "u",
        "database.password": "p",
        "database.dbname": "d",
        "topic.prefix": "p",
    },
    "samsa.postgres.sink": {"connection.url": "postgresql://127.0.0.1:1/x"},
    "samsa.postgres.source": {
        "connection.url": "postgresql://127.0.0.1:1/x",
        "mode": "bulk",
        "topic.prefix": "p",
    },
    "samsa.s3.sink": {
        "s3.bucket.name": "bucket",
        "aws.access.key.id": "id",
        "aws.secret.access.key": "key",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "10",
        "store.url": "http://127.0.0.1:1",
    },
    "samsa.spark.sink": {"table.path": "tables/t"},
    "samsa.spark.sql": {
        "query": "SELECT id FROM orders",
        "view.schemas": "orders: id BIGINT",
        "output.topic": "made",
    },
}
BATCHES = [[sink_record({"id": n}, offset=n) for n in part] for part in ((0, 1, 2), (3, 4))]

EACH = pytest.mark.parametrize("plugin", registry.classes(), ids=lambda plugin: plugin.name)


@EACH
def test_definitions_are_sound(plugin: type[Connector]) -> None:
    contract.definition_is_sound(plugin)


def test_only_connectors_with_marked_keys_open_files() -> None:
    opening = {
        path.parent.name
        for path in Path(plugins.__file__).parent.rglob("*.py")
        if re.search(r"home_files|(?<!def )(?<![\w.])open\(|os\.open\(|\bPath\(", path.read_text())
    }
    marking = {
        plugin.__module__.split(".")[2]
        for plugin in registry.classes()
        if any(key.files is not None for key in plugin.definition())
    }

    assert opening == marking == {"file", "spark"}


@EACH
def test_tasks_are_told_what_is_defined(plugin: type[Connector]) -> None:
    contract.tasks_are_told_what_is_defined(plugin(), CONFIGS[plugin.name])


@EACH
def test_secrets_stay_hidden(
    plugin: type[Connector], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path))
    # It may be reached, and nobody listens there.
    monkeypatch.setenv("SAMSA_CONNECT_TARGETS", "127.0.0.1:1")

    contract.secrets_stay_hidden(plugin(), CONFIGS[plugin.name])


@pytest.mark.slow
def test_packages_need_no_clients() -> None:
    # The folder below `connectors.plugins`, which may have folders of its own.
    packages = {".".join(plugin.__module__.split(".")[:3]) for plugin in registry.classes()}

    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in ("psycopg", "pyarrow"))
    read = "".join(
        f"import {package} as p\n[c.definition() for c in p.CONNECTORS]\n"
        for package in sorted(packages)
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{blocked}{read}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_a_file_is_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "lines").write_text("".join(f"{n}\n" for n in range(500)))

    whole = contract.source_resumes(FileSource(), {"file": "lines", "topic": "t"})

    assert len(whole) == 500


def test_a_file_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path))
    file = tmp_path / "files" / "lines"

    contract.sink_repeats_nothing(FileSink(), {"file": "lines"}, BATCHES, file.read_bytes)

    assert file.read_text().splitlines() == [f'{{"id": {n}}}' for n in range(5)]


@requires("postgresql")
@pytest.mark.slow
def test_tables_are_read_on_and_written_once(
    unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMSA_CONNECT_TARGETS", "127.0.0.1")
    server, name = shared_postgres(), unique("contract").lower().replace("-", "_")
    url = server.make_database(name)
    config = {"connection.url": url}
    written = {**config, "auto.create": "true", "pk.mode": "kafka"}
    mode = {"mode": "incrementing", "topic.prefix": "t", "poll.interval.ms": "0"}
    try:
        with psycopg.connect(url, autocommit=True) as database:
            contract.sink_repeats_nothing(
                PostgresSink(),
                written,
                BATCHES,
                lambda: database.execute("SELECT * FROM orders ORDER BY 3").fetchall(),
            )
            (count,) = database.execute("SELECT count(*) FROM orders").fetchone() or (0,)
        whole = contract.source_resumes(
            PostgresSource(),
            {
                **config,
                **mode,
                "table.whitelist": "orders",
                "incrementing.column.name": "id",
                "validate.non.null": "false",
                "batch.max.rows": "2",
            },
        )
    finally:
        server.drop_database(name)

    assert count == 5
    assert [record.value["id"] for record in whole] == [0, 1, 2, 3, 4]


class Talking(FileSource):
    """Tells its password, and has a key without words and one with a wrong default."""

    name = "test.talking"
    keys: ClassVar[tuple[Key, ...]] = (
        Key(name="a", kind=Kind.PASSWORD, default=None, importance=Importance.LOW, doc="A."),
    )

    @classmethod
    def definition(cls) -> Definition:
        return Definition(cls.keys)

    def task_configs(self, parsed: Any, *, max_tasks: int) -> list[dict[str, str]]:
        return [{"a": parsed["a"].reveal() if parsed["a"] else "x"}] * (max_tasks + 1)


def test_what_breaks_the_contract_is_found() -> None:
    class Silent(Talking):
        keys = (Key(name="a", kind=Kind.INT, default="b", importance=Importance.LOW, doc=""),)

    class Unmarked(Talking):
        keys = (
            Key(
                name="a",
                kind=Kind.STRING,
                importance=Importance.LOW,
                doc="A file.",
                check=home_files.problem,
            ),
        )

    with pytest.raises(AssertionError, match="a has words"):
        contract.definition_is_sound(Silent)
    with pytest.raises(AssertionError, match="a: mark it with `files`"):
        contract.definition_is_sound(Unmarked)
    with pytest.raises(AssertionError, match="2 tasks of at most 1"):
        contract.tasks_are_told_what_is_defined(Talking(), {})
    with pytest.raises(AssertionError, match="a secret is shown"):
        contract.secrets_stay_hidden(Talking(), {})
