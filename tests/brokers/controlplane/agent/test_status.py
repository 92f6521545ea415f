"""The agent's status: what it says while its database is well, away, or set back."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.cluster.image import Position
from brokers.cluster.store import MetadataRegressed
from tests.brokers.controlplane.host import AGENT_ID, Host, new_cluster, running_host
from tests.fakes.clock import ManualClock

from brokers import agent_status  # isort: skip
from brokers.controlplane.agent.files import Files, refusal  # isort: skip
from brokers.controlplane.agent.status import (  # isort: skip
    AWAY_AFTER_MS,
    WAITS_AFTER_MS,
    condition_of,
    keep_status,
)
from brokers.controlplane.database import connection  # isort: skip

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def said(of: str, clock: ManualClock) -> tuple[str, str]:
    """Return condition and message of a host in one of the three states."""

    async def story() -> tuple[str, str]:
        async with running_host(new_cluster_id, clock=clock) as host:
            host.store.regressed = (
                MetadataRegressed(Position(), Position()) if of == agent_status.REGRESSED else None
            )
            if of == agent_status.DATABASE_AWAY:
                host.following.cancel()
                clock.advance(AWAY_AFTER_MS + 1000)
            told = condition_of(host.store, clock)
            assert told.cluster_id == new_cluster_id
            assert told.version == host.store.image.version
            return told.condition, told.message

    new_cluster_id = new_cluster()
    return asyncio.run(story())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (agent_status.WELL, ""),
        (agent_status.REGRESSED, "METADATA_REGRESSED"),
        (agent_status.DATABASE_AWAY, "has not answered for 6 s"),
    ],
)
def test_an_agent_says_how_its_database_is(database: str, state: str, words: str) -> None:
    told, message = said(state, ManualClock())

    assert told == state
    assert words in message


def test_a_status_is_there_while_the_agent_runs(database: str, tmp_path: Path) -> None:
    async def story(host: Host, clock: ManualClock) -> None:
        keeping = asyncio.create_task(keep_status(host.store, tmp_path, clock, Files(clock)))
        async with asyncio.timeout(10):
            # It is written by a thread, which tells nobody.
            while agent_status.read(tmp_path) is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
        keeping.cancel()
        await asyncio.wait([keeping])
        assert agent_status.read(tmp_path) is None

    async def run() -> None:
        clock = ManualClock()
        async with running_host(cluster_id, clock=clock) as host:
            await story(host, clock)

    cluster_id = new_cluster()
    asyncio.run(run())


HOLD_THE_LOCK = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(file: str | Path) -> Iterator[int]:
    """Hold the lock of a SQLite file in another process; yield its id."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield holder.pid


def test_an_agent_says_that_another_process_locks_its_database(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.lanes.PROPOSAL_LOCK_S", 0.1)
    clock = ManualClock()

    async def story() -> None:
        async with running_host(cluster_id, clock=clock) as host:
            await host.store.prove(agent_id=AGENT_ID)
            with locked(connection().settings_dict["NAME"]) as pid:
                # Nobody changes anything, and pages could still be read.
                with pytest.raises(ConnectionError):
                    await host.store.prove(agent_id=AGENT_ID)
                clock.advance(WAITS_AFTER_MS + 1000)
                await host.store.ask(read_nothing)

                told = condition_of(host.store, clock)

                assert told.condition == agent_status.CHANGES_WAIT
                held = f"database is locked by process {pid}"
                assert f"no change for 6 s: {held}" in told.message
                assert (told.oldest_write_ms, told.last_refusal[: len(held)]) == (6_000, held)
            await host.store.prove(agent_id=AGENT_ID)
            assert condition_of(host.store, clock).condition == agent_status.WELL

    cluster_id = new_cluster()
    asyncio.run(story())


def read_nothing() -> None:
    pass


def test_an_agent_says_which_other_file_of_its_home_is_locked(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.agent.files.LOCK_S", 0.1)
    clock = ManualClock()
    files = Files(clock)

    def look(alias: str) -> None:
        files.take(alias, refusal(alias), began=clock.monotonic())

    with locked(tmp_path / "web.db") as pid:
        look("default")
        assert files.trouble == ""
        clock.advance(6_000)
        look("default")
        look("connect")

        assert files.trouble.startswith(
            f"web.db takes no writes for 6 s: database is locked by process {pid}"
        )
    look("default")
    assert files.trouble == ""


def test_an_agent_outlives_another_file_of_its_home_that_is_damaged(
    database: str, tmp_path: Path
) -> None:
    (tmp_path / "web.db").write_bytes(b"no database" * 1_000)

    assert refusal("default") == "file is not a database"
