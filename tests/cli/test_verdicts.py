"""Verdicts in the command line, from a collector's socket that a test serves."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from typing import Any

import click
import pytest

from brokers.supervisor.home import COLLECTOR_SOCKET, Home
from cli.verdicts import verdicts
from console.monitoring.tables import FORMAT
from gateway.kafka.connection import Connection
from tests.builders import live as rows
from tests.builders.live import Told

BOOTSTRAP = "127.0.0.1:9092"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose collector tells of one group."""
    told = Told()
    told.put(rows.group("billing", verdict="falling behind", rule="grows", since_ms=7_000))
    answer = json.dumps({"format": FORMAT, "rows": told.tables}).encode()

    class Handler(BaseHTTPRequestHandler):
        def send_table(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = send_table  # noqa: N815 (the server's name for it)

        def log_message(self, *_arguments: Any) -> None:
            pass

    run = tmp_path / "run"
    run.mkdir()
    Home(tmp_path).settings_file.write_text(json.dumps({"bootstrap": BOOTSTRAP}))
    folder = Home(tmp_path).socket_folder()
    with UnixStreamServer(str(folder / COLLECTOR_SOCKET), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield tmp_path
        server.shutdown()
        thread.join()


def asked(home: Path, bootstrap: str) -> dict[str, dict[str, Any]]:
    """Return what a command of this home tells of a cluster."""
    with click.Context(click.Command("list")) as context:
        context.params["home"] = home
        found = verdicts(Connection(bootstrap=bootstrap))
    return {name: told.json() for name, told in found.items()}


def test_verdicts_are_those_of_the_pages_for_the_cluster_of_the_home(home: Path) -> None:
    assert asked(home, BOOTSTRAP) == {
        "billing": {
            "verdict": "falling behind",
            "rule": "The lag has grown for some 5 min: less is read than arrives.",
            "since_ms": 7_000,
        }
    }


def test_another_cluster_has_no_verdicts(home: Path) -> None:
    assert asked(home, "elsewhere:9092") == {}


def test_home_without_a_collector_has_no_verdicts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    Home(tmp_path).settings_file.write_text(json.dumps({"bootstrap": BOOTSTRAP}))

    assert asked(tmp_path, BOOTSTRAP) == {}
