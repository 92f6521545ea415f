"""Spark sinks on a Connect server that is killed and started again, and knows nothing of Samsa."""

import os
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from spark_integration.jobs.faults import Fault, fault_of
from spark_integration.jobs.targets import parse_target
from tests.connectors.plugins.spark.test_sink_home import (
    BATCH,
    PATIENCE_S,
    delta_numbers,
    java_processes,
    parquet_numbers,
    sink,
)
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.spark.processes import connect_server, empty_environment, free_port

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
# Where columns are found in the records, each batch is read twice.
ONE_READ = {"value.format": "string"}
SOURCE = {
    "connector.class": "samsa.datagen",
    "topic": "orders",
    "records.per.second": "1000",
    "iterations": str(RECORDS),
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def wait_for_more(home: ConnectorsHome) -> None:
    lake = home.folder / "files/lake"
    before = sum(parquet_numbers(lake).values())
    home.wait(
        lambda: sum(parquet_numbers(lake).values()) > min(before, RECORDS - 1),
        f"rows behind {before}",
        seconds=PATIENCE_S,
    )


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


def expect_faults_to_be_known(address: str) -> None:
    """Ask a server with a wrong token, and for a session that it has forgotten."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    from spark_integration.jobs.connect_engine import ConnectEngine  # noqa: PLC0415

    with pytest.raises(PySparkException, match="Invalid authentication token") as wrong:
        ConnectEngine(parse_target(address, token=TOKEN.upper()), {})
    engine = ConnectEngine(parse_target(address, token=TOKEN), {})
    was_alive = engine.is_alive()
    engine.spark.client.release_session()
    with pytest.raises(PySparkException, match="SESSION") as forgotten:
        engine.spark.range(1).collect()

    assert fault_of(wrong.value) is Fault.TOKEN
    assert fault_of(forgotten.value) is Fault.SESSION
    assert (was_alive, engine.is_alive()) == (True, False)
    engine.close()


def test_rows_lie_once_when_the_server_is_killed_and_no_file_holds_the_token(
    tmp_path: Path,
) -> None:
    python = empty_environment(tmp_path / "python")
    port = free_port()
    environment = {"SAMSA_SPARK": f"sc://127.0.0.1:{port}", "SAMSA_SPARK_TOKEN": TOKEN}
    with ExitStack() as stack:
        first = tmp_path / "first"
        address = stack.enter_context(connect_server(first, python, port=port, token=TOKEN))
        expect_faults_to_be_known(address)
        home = stack.enter_context(connectors_home(tmp_path / "home", environment=environment))
        home.create("orders-source", SOURCE)
        home.create("to-lake", {**sink("lake", "parquet"), **ONE_READ})
        home.create("to-delta", {**sink("delta", "delta"), **ONE_READ})
        home.create("query", SQL)
        wait_for_more(home)
        (server,) = java_processes(first)
        os.kill(server, signal.SIGKILL)
        wait_for_words(home, "cannot be reached")

        stack.enter_context(connect_server(tmp_path / "second", python, port=port, token=TOKEN))

        for name, numbers in {"lake": parquet_numbers, "delta": delta_numbers}.items():
            folder = home.folder / "files" / name
            home.wait(
                lambda numbers=numbers, folder=folder: len(numbers(folder)) >= RECORDS,  # type: ignore[misc]
                f"all rows of {name}",
                seconds=PATIENCE_S,
            )
            assert numbers(folder) == Counter(dict.fromkeys(range(RECORDS), 1))
        home.wait(lambda: home.tasks("query")[0].state == "FAILED", "a query to be refused")
        assert "does not run on a Connect server" in home.tasks("query")[0].trace
        assert TOKEN not in repr(home.statuses())
        assert files_with(TOKEN, home.folder) == []
