"""The services that tests share: how each is started, and what its users get.

Users of a shared home see each other's topics and groups: take names from the fixture `unique`,
ask for what you made and for nothing else, and leave settings of the brokers alone.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokers.supervisor import client
from brokers.supervisor.home import Home
from tests.chromium import running_chromium
from tests.cluster import running_cluster
from tests.postgres import PostgresServer, postgres_server
from tests.suite.shared import Service, ask


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHome:
    """A running home of ours that a test uses beside others, and so may not disturb."""

    home: Home
    bootstrap: str

    def status(self) -> Mapping[str, Any]:
        return client.ask(self.home, "status")

    def pid(self, name: str) -> int:
        """The process of a component: agent, broker-1 …, web."""
        entries = self.status()["components"]
        return next(int(entry["pid"]) for entry in entries if entry["name"] == name)


def shared_home(*, brokers: int = 1, environment: Mapping[str, str] | None = None) -> SharedHome:
    """Return the home of this run with so many brokers and these settings."""
    told = ask("home", brokers=brokers, environment=dict(environment or {}))
    return SharedHome(home=Home(Path(told["folder"])), bootstrap=told["bootstrap"])


def shared_console() -> SharedHome:
    """Return the home with a web server; tests/browser owns it and may restart its brokers."""
    told = ask("console")
    return SharedHome(home=Home(Path(told["folder"])), bootstrap=told["bootstrap"])


def shared_chromium() -> str:
    """Return the address at which the Chromium of this run takes DevTools clients."""
    return str(ask("chromium")["address"])


def shared_postgres() -> PostgresServer:
    """Return the PostgreSQL server of this run; make a database of your own in it."""
    told = ask("postgres")
    return PostgresServer(folder=Path(told["folder"]), port=told["port"], is_shared=True)


def shared_s3() -> str:
    """Return the address of this run's S3, an HTTP URL; make a bucket of your own in it."""
    return str(ask("s3")["url"])


@contextmanager
def _home(folder: Path, *, brokers: int, environment: Mapping[str, str]) -> Iterator[Any]:
    with running_cluster(folder / "home", brokers=brokers, environment=environment) as cluster:
        yield {"folder": str(cluster.folder), "bootstrap": cluster.bootstrap}


@contextmanager
def _console(folder: Path) -> Iterator[Any]:
    # Two brokers: the console stays full while one of them restarts.
    with running_cluster(folder / "home", brokers=2, has_web=True) as cluster:
        yield {"folder": str(cluster.folder), "bootstrap": cluster.bootstrap}


@contextmanager
def _chromium(folder: Path) -> Iterator[Any]:
    with running_chromium(folder) as address:
        yield {"address": address}


@contextmanager
def _postgres(_folder: Path) -> Iterator[Any]:
    with postgres_server() as server:
        yield {"folder": str(server.folder), "port": server.port}


@contextmanager
def _s3(_folder: Path) -> Iterator[Any]:
    # Imported late: most runs have no S3 in them.
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    # Its lines about each request would be the run's output.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {"url": f"http://{host}:{port}"}
    finally:
        server.stop()


@contextmanager
def _java(_folder: Path) -> Iterator[Any]:
    # Imported late: most runs have no Java in them.
    from tests.oracles.java import running_java  # noqa: PLC0415

    with running_java() as told:
        yield told


SERVICES: Mapping[str, Service] = {
    "home": _home,
    "console": _console,
    "chromium": _chromium,
    "postgres": _postgres,
    "s3": _s3,
    "java": _java,
}
