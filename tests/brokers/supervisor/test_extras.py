"""An extra that the console asked for is installed by a process, which is followed to its end."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from brokers.clock import SystemClock
from brokers.supervisor import extras
from brokers.supervisor.extras import NAMES, Extras
from brokers.supervisor.front import Journal
from brokers.supervisor.home import Home
from brokers.supervisor.output import LogFile
from cli.environment import EXTRAS
from tests.brokers.supervisor.houses import PATIENCE, running, within

pytestmark = pytest.mark.slow


class Installing:
    """A home that installs by a program of the test."""

    def __init__(self, home: Home, program: str) -> None:
        self.home = home
        self.program = program

    def ask(self, name: str) -> None:
        self.home.extras_mark.write_text(name, encoding="utf-8")

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.home.extras_file.read_text(encoding="utf-8"))
        return found

    async def tells(self, **wanted: str) -> dict[str, Any]:
        """Wait until the file says so."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if self.home.extras_file.exists():
                    told = self.told()
                    if all(value in told[key] for key, value in wanted.items()):
                        return told
                await asyncio.sleep(0)

    async def refuses(self) -> None:
        """Wait until the supervisor's log says that a name was refused."""
        log = self.home.log_file("supervisor")
        async with asyncio.timeout(PATIENCE):
            while True:
                if log.exists() and "extra.refused" in log.read_text(encoding="utf-8"):
                    return
                await asyncio.sleep(0)


@asynccontextmanager
async def installing(
    folder: Path, program: str, *, afterwards: str = "", **variables: str
) -> AsyncIterator[Installing]:
    home = Home(folder)
    home.prepare()
    journal = Journal(LogFile(home.log_file("supervisor")), SystemClock())
    command = (sys.executable, "-c", program)
    behind = {"spark": (sys.executable, "-c", afterwards)} if afterwards else {}
    made = Extras(home, SystemClock(), journal, variables, command=command, afterwards=behind)
    task = asyncio.create_task(made.run())
    try:
        yield Installing(home, program)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        journal.close()


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "LOOK_SECONDS", 0.01)


def test_what_is_asked_for_is_installed_and_its_lines_are_told(tmp_path: Path) -> None:
    program = (
        "import sys; print('building pyspark', flush=True); print('of', sys.argv[1], flush=True);"
        "open('/dev/stdin').read(); print('installed', flush=True)"
    )

    async def scenario() -> None:
        async with installing(tmp_path, program) as house:
            await house.tells(state="ready")

            house.ask("spark")
            told = await house.tells(state="done")

            assert (told["name"], told["line"]) == ("spark", "")
            assert told["told_ms"] >= told["began_ms"] > 0
            assert not house.home.extras_mark.exists()
        log = house.home.log_file("extras").read_text(encoding="utf-8")
        told_lines = [line.partition("Z ")[2] for line in log.splitlines()]
        assert told_lines == ["building pyspark", "of spark", "installed"]

    within(scenario)


def test_an_extra_is_installed_before_what_comes_afterwards_is_done(tmp_path: Path) -> None:
    afterwards = "print('storing classes', flush=True); import time; time.sleep(60)"

    async def scenario() -> None:
        async with installing(tmp_path, "print('one')", afterwards=afterwards) as house:
            house.ask("parquet")
            await house.tells(name="parquet", state="done")
            house.ask("spark")
            await house.tells(name="spark", state="done")
            log = house.home.log_file("extras")
            async with asyncio.timeout(PATIENCE):
                while "storing classes" not in log.read_text(encoding="utf-8"):  # noqa: ASYNC110
                    await asyncio.sleep(0)

            assert house.told()["state"] == "done"
            assert log.read_text(encoding="utf-8").count("storing") == 1
            # Another one does not wait for it, and has it begin again.
            house.ask("parquet")
            await house.tells(name="parquet", state="done")
            async with asyncio.timeout(PATIENCE):
                while log.read_text(encoding="utf-8").count("storing") < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0)

    within(scenario)


def test_a_line_of_the_installer_is_told_while_it_works_and_without_a_password(
    tmp_path: Path,
) -> None:
    program = (
        "print('asking https://me:secret@index/simple', flush=True); import time; time.sleep(60)"
    )

    async def scenario() -> None:
        async with installing(tmp_path, program) as house:
            house.ask("parquet")
            told = await house.tells(state="running", line="asking")

            assert told["line"] == "asking https://…@index/simple"
        # The home stopped: the next one says so, and begins nothing by itself.
        async with installing(tmp_path, program) as house:
            told = await house.tells(state="failed")

            assert (told["name"], told["line"]) == ("parquet", extras.CUT_OFF)

    within(scenario)


def test_what_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = "print('no room on the disk'); raise SystemExit(1)"

    async def scenario() -> None:
        async with installing(tmp_path, program) as house:
            house.ask("spark")
            told = await house.tells(state="failed")

            assert told["line"] == "ended with exit code 1: no room on the disk"

    within(scenario)


@pytest.mark.parametrize("name", ["java; rm", "", "x" * 1000, "\x00\xff"])
def test_a_name_that_is_none_of_the_extras_starts_nothing(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with installing(tmp_path, "print('installed')") as house:
            await house.tells(state="ready")
            house.ask(name)
            await house.refuses()

            house.ask("parquet")
            await house.tells(state="done", name="parquet")
        assert house.home.log_file("extras").read_text(encoding="utf-8").endswith("Z installed\n")

    within(scenario)


def test_the_installer_gets_where_packages_come_from_and_no_database(tmp_path: Path) -> None:
    program = "import os; print(sorted(os.environ)); raise SystemExit(1)"
    variables = {"PIP_INDEX_URL": "x", "https_proxy": "y", "DATABASE_URL": "z", "REDIS_URL": "z"}

    async def scenario() -> None:
        async with installing(tmp_path, program, **variables) as house:
            house.ask("spark")
            told = await house.tells(state="failed")

            assert "PIP_INDEX_URL" in told["line"]
            assert "https_proxy" in told["line"]
            assert "DATABASE_URL" not in told["line"]
            assert "REDIS_URL" not in told["line"]

    within(scenario)


def test_a_home_with_a_console_installs_and_one_without_does_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "with", web_port=0) as house:
            await house.audience.hears("all is healthy")
            assert json.loads(house.home.extras_file.read_text())["state"] == "ready"
        async with running(tmp_path / "without") as house:
            await house.audience.hears("all is healthy")
            assert not house.home.extras_file.exists()

    within(scenario)


def test_all_names_are_extras() -> None:
    assert set(EXTRAS) >= NAMES
