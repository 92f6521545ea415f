"""A Connect server that knows nothing of Samsa: its clients, and sinks through its death.

The last test kills the server of this file.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from spark_integration.jobs.faults import Fault, fault_of
from spark_integration.jobs.targets import parse_target
from tests.connectors.plugins.spark.test_sink_home import (
    BATCH,
    ONE_READ,
    PATIENCE_S,
    delta_numbers,
    java_processes,
    parquet_numbers,
    require_each_once,
    sink,
    wait_for_more,
)
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.spark.page import (
    blocks,
    expect_the_batch_done,
    make_package,
    make_topics,
    places,
    run,
    with_batch,
)
from tests.spark.processes import connect_server, empty_environment, free_port
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]
# With what an address of Spark's would divide its settings by.
TOKEN = "shared; secret=of this test"  # noqa: S105 (it is none)
RECORDS = 4 * BATCH
SQL = {
    "connector.class": "samsa.spark.sql",
    "topics": "orders",
    "view.schemas": "orders: id BIGINT",
    "query": "SELECT id FROM orders",
    "output.topic": "copies",
}
SOURCE = {
    "connector.class": "samsa.datagen",
    "topic": "orders",
    "records.per.second": "1000",
    "iterations": str(RECORDS),
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def wait_for_words(home: ConnectorsHome, words: str) -> None:
    log = home.folder / "logs"
    home.wait(
        lambda: any(words in path.read_text(errors="replace") for path in log.iterdir()),
        words,
        seconds=PATIENCE_S,
    )


def files_with(text: str, folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A Connect server that asks for the token, until it is killed."""

    folder: Path
    python: Path
    port: int
    address: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    python = empty_environment(folder / "python")
    with connect_server(folder / "first", python, port=port, token=TOKEN) as address:
        yield Server(folder=folder / "first", python=python, port=port, address=address)


def test_a_wrong_token_and_a_forgotten_session_are_known(server: Server) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    from spark_integration.jobs.connect_engine import ConnectEngine  # noqa: PLC0415

    with pytest.raises(PySparkException, match="Invalid authentication token") as wrong:
        ConnectEngine(parse_target(server.address, token=TOKEN.upper()), {})
    engine = ConnectEngine(parse_target(server.address, token=TOKEN), {})
    was_alive = engine.is_alive()
    engine.spark.client.release_session()
    with pytest.raises(PySparkException, match="SESSION") as forgotten:
        engine.spark.range(1).collect()

    assert fault_of(wrong.value) is Fault.TOKEN
    assert fault_of(forgotten.value) is Fault.SESSION
    assert (was_alive, engine.is_alive()) == (True, False)
    engine.close()


def test_the_package_comes_with_a_session_of_any_client(
    server: Server, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """Run the program of docs/howto/use-from-your-spark.md."""
    bootstrap, dist = shared_home().bootstrap, make_package(tmp_path / "dist")
    topics = make_topics(bootstrap, unique)
    address = f"{server.address}/;token={quote(TOKEN, safe='')}"
    own = {"sc://localhost:15002": address, '"dist/': f'"{dist}/'}

    run(
        tmp_path / "job",
        with_batch(blocks()[2]),
        python=server.python,
        places={**places(bootstrap, topics), **own},
    )

    expect_the_batch_done(bootstrap, topics)


def test_rows_lie_once_when_the_server_is_killed_and_no_file_holds_the_token(
    server: Server, tmp_path: Path
) -> None:
    environment = {"SAMSA_SPARK": f"sc://127.0.0.1:{server.port}", "SAMSA_SPARK_TOKEN": TOKEN}
    with ExitStack() as stack:
        home = stack.enter_context(connectors_home(tmp_path / "home", environment=environment))
        home.create("orders-source", SOURCE)
        home.create("to-lake", {**sink("lake", "parquet"), **ONE_READ})
        home.create("to-delta", {**sink("delta", "delta"), **ONE_READ})
        home.create("query", SQL)
        wait_for_more(home, RECORDS)
        (process,) = java_processes(server.folder)
        os.kill(process, signal.SIGKILL)
        wait_for_words(home, "cannot be reached")

        second = tmp_path / "second"
        stack.enter_context(connect_server(second, server.python, port=server.port, token=TOKEN))

        require_each_once(home, "lake", parquet_numbers, RECORDS)
        require_each_once(home, "delta", delta_numbers, RECORDS)
        home.wait(lambda: home.tasks("query")[0].state == "FAILED", "a query to be refused")
        assert "does not run on a Connect server" in home.tasks("query")[0].trace
        assert TOKEN not in repr(home.statuses())
        assert files_with(TOKEN, home.folder) == []
