"""A PostgreSQL server of Debian's, started for tests and gone with them.

The server refuses to run as root, so root starts it as nobody. It listens on a unix socket in its
own folder and on a claimed port of the loopback address; nothing but loopback reaches it, and only
roles of the group `guarded` need a password. `restart` and `stop` are there for tests of what
happens while it is away.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from bench.ports import claim_port
from tests.suite.extras import postgres_programs

START_SECONDS = 60
STOP_SECONDS = 20
# Durability is not what these tests are about, and a shared disk is slow.
# Six workers share one server, each with two pools of eight, beside the agents
# of homes; this leaves as many to spare.
FAST = ("-c", "fsync=off", "-c", "max_connections=240", "-c", "shared_buffers=16MB")
# Change capture reads the log; a slot each for the tests of all workers at once.
LOGICAL = ("-c", "wal_level=logical", "-c", "max_replication_slots=40", "-c", "max_wal_senders=40")
# A database with a slot cannot be dropped, so drop leftover slots.
DROP_SLOTS = """
    SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots
    WHERE database = '{0}' AND active;
    SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '{0}'
"""

# The first rule that matches a client counts; a group that does not exist matches no client.
GUARDED = "host all +guarded 127.0.0.1/32 scram-sha-256"


@dataclass(slots=True, kw_only=True)
class PostgresServer:
    """One server. `url` names its first database."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    # Whether other tests use it at the same time, so that no test may stop it.
    is_shared: bool = False

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgres://samsa@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and return when it takes connections."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    _program("postgres"),
                    *("-D", str(self.folder / "data"), "-k", str(self.folder)),
                    *("-h", "127.0.0.1", "-p", str(self.port), *FAST, *LOGICAL),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=_user(),
            )
        deadline = monotonic() + START_SECONDS
        # pg_isready waits on its own while the server answers that it is starting.
        while self._ask("pg_isready", "-t", "1").returncode != 0:
            said = (self.folder / "server.log").read_text(errors="replace")[-2000:]
            assert self.process.poll() is None, f"PostgreSQL ended:\n{said}"
            assert monotonic() < deadline, f"PostgreSQL did not start:\n{said}"

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop; SIGINT disconnects clients, SIGQUIT is a crash."""
        assert not self.is_shared, "a test that stops PostgreSQL starts one with postgres_server()"
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(how)
            process.wait(STOP_SECONDS)

    def restart(self) -> None:
        self.stop()
        self.start()

    def started_at(self) -> str:
        """Ask the server for the moment it was started."""
        question = "SELECT pg_postmaster_start_time()"
        told = self._ask("psql", "-U", "samsa", "-d", "postgres", "-Atc", question)
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()

    def make_database(self, name: str, *, template: str = "template1") -> str:
        """Make a database, a copy of the template's; return its URL."""
        self._require("createdb", "-U", "samsa", "-T", template, name)
        return self.url_of(name)

    def dump(self, database: str) -> bytes:
        """Return a database as the statements that make it again."""
        told = self._ask("pg_dump", "-U", "samsa", "--no-owner", database)
        assert told.returncode == 0, told.stderr
        # Commands that psql knows since 2025 only.
        lines = told.stdout.splitlines(keepends=True)
        kept = (line for line in lines if not line.startswith(("\\restrict", "\\unrestrict")))
        return "".join(kept).encode()

    def load(self, database: str, statements: bytes) -> None:
        """Fill an empty database with what `dump` has returned."""
        file = self.folder / f"{database}.sql"
        file.write_bytes(statements)
        options = ("-q", "-v", "ON_ERROR_STOP=1", "-f", str(file))
        told = self._ask("psql", "-U", "samsa", "-d", database, *options)
        assert told.returncode == 0, told.stderr

    def drop_database(self, name: str) -> None:
        """Drop a database with its slots and connections."""
        self._require("psql", "-U", "samsa", "-d", "postgres", "-qAtc", DROP_SLOTS.format(name))
        self._require("dropdb", "-U", "samsa", "--force", name)

    def _require(self, program: str, *arguments: str) -> None:
        done = self._ask(program, *arguments)
        assert done.returncode == 0, done.stderr

    def _ask(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        place = ("-h", "127.0.0.1", "-p", str(self.port))
        return subprocess.run(
            [_program(program), *place, *arguments], capture_output=True, text=True, check=False
        )


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Make and start a server; stop it and remove what it wrote at the end."""
    folder = Path(tempfile.mkdtemp(prefix="samsa-postgres-"))
    server = PostgresServer(folder=folder, port=claim_port())
    try:
        if os.geteuid() == 0:
            folder.chmod(0o755)
            shutil.chown(folder, "nobody")
        done = subprocess.run(
            [
                _program("initdb"),
                *("-D", str(folder / "data"), "-U", "samsa", "--auth=trust", "--no-sync"),
                *("--encoding=UTF8", "--locale=C"),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            user=_user(),
        )
        assert done.returncode == 0, done.stderr
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"{GUARDED}\n{rules.read_text('utf-8')}", "utf-8")
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    folder = postgres_programs()
    assert folder is not None, "tests that use the server say requires('postgresql')"
    return str(folder / name)


def _user() -> str | None:
    return "nobody" if os.geteuid() == 0 else None
