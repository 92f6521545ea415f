"""Extras are installed by a button, for who may start and stop what runs, and the audit says so."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from brokers.controlplane import models
from brokers.supervisor.extras import NAMES
from brokers.supervisor.home import Home
from cli.environment import EXTRAS as OF_COMMANDS
from console.queries import extras
from tests.console import cluster_rows
from tests.console.cluster_rows import CLUSTER_ID

PAGE = f"/extras?cluster={CLUSTER_ID}"


class Machine:
    """A home, and what is installed beside it."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.home.prepare()
        self.installed: set[str] = set()

    def tells(self, state: str, name: str = "", **more: Any) -> None:
        told = {"name": name, "state": state, "line": "", "began_ms": 1000, "told_ms": 1000}
        self.home.extras_file.write_text(json.dumps({**told, **more}), encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Machine:
    made = Machine(tmp_path / "home")
    monkeypatch.setattr(extras, "is_installed", made.installed.__contains__)
    cluster_rows.cluster()
    settings.SAMSA_HOME = made.home.folder
    return made


def text_of(client: Client, status: int = 200) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == status
    return answer.content.decode()


def install(client: Client, name: str = "spark") -> Any:
    return client.post(f"/extras/{name}/install", {"cluster": CLUSTER_ID})


def test_what_is_there_and_what_is_missing_is_told(olga: Client, machine: Machine) -> None:
    machine.tells("ready")
    machine.installed.add("pyarrow")

    page = text_of(olga)

    assert page.count(">Installed<") == 1
    assert page.count(">Not installed<") == 1
    assert 'aria-label="Install spark"' in page
    assert 'aria-label="Install parquet"' not in page
    assert "hx-trigger" not in page.partition('id="extras"')[2]


def test_the_button_leaves_the_name_and_an_entry_in_the_audit(
    olga: Client, machine: Machine
) -> None:
    machine.tells("ready")

    answer = install(olga)

    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert machine.home.extras_mark.read_text(encoding="utf-8") == "spark"
    (entry,) = models.AuditEntry.objects.all()
    assert (entry.kind, entry.subject, entry.name) == ("install extra", "extra", "spark")
    assert entry.actor == "User:olga"
    page = text_of(olga)
    assert ">Waiting<" in page
    assert 'hx-trigger="every 2s"' in page


def test_progress_is_told_until_the_end(olga: Client, machine: Machine) -> None:
    machine.tells("running", "spark", line="downloading <pyspark> (435 MiB) [60 s]")

    page = text_of(olga)

    assert ">Installing<" in page
    assert "downloading &lt;pyspark&gt; (435 MiB) [60 s]" in page
    assert 'hx-trigger="every 2s"' in page
    # One at a time.
    assert "Install parquet" not in page

    machine.installed |= {"pyspark", "pyarrow", "deltalake", "pyiceberg"}
    machine.tells("done", "spark")

    page = text_of(olga)

    assert ">Installed<" in page
    assert "Connectors can use it now" in page
    assert f'href="/connectors/+new?cluster={CLUSTER_ID}"' in page
    assert 'hx-trigger="every 2s"' not in page


def test_what_was_cut_off_in_the_middle_is_not_installed(olga: Client, machine: Machine) -> None:
    machine.installed |= {"pyspark", "pyarrow"}
    machine.tells("failed", "spark", line="the home stopped before it was installed: ask again")

    page = text_of(olga)

    assert ">Failed<" in page
    assert 'aria-label="Install spark"' in page


def test_what_failed_says_why_and_may_be_tried_again(olga: Client, machine: Machine) -> None:
    machine.tells("failed", "spark", line="ended with exit code 1: no room")

    page = text_of(olga)

    assert ">Failed<" in page
    assert "ended with exit code 1: no room" in page
    assert 'aria-label="Install spark"' in page
    assert install(olga).status_code == 302


def test_one_installation_at_a_time_is_asked_for(olga: Client, machine: Machine) -> None:
    machine.tells("running", "parquet")

    answer = install(olga)

    assert answer.status_code == 409
    assert "under way already" in answer.content.decode()
    assert not machine.home.extras_mark.exists()
    assert not models.AuditEntry.objects.exists()


def test_a_console_without_a_supervisor_says_how_it_is_done_by_hand(
    olga: Client, machine: Machine
) -> None:
    page = text_of(olga)

    assert "./samsa extras install NAME" in page
    assert 'aria-label="Install' not in page
    answer = install(olga)
    assert answer.status_code == 409
    assert "./samsa extras install spark on each machine" in answer.content.decode()


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_file_that_cannot_be_read_is_none(olga: Client, machine: Machine, text: str) -> None:
    machine.home.extras_file.write_text(text, encoding="utf-8")

    assert ">By hand<" in text_of(olga)


def test_who_may_not_manage_brokers_neither_sees_nor_asks(victor: Client, machine: Machine) -> None:
    machine.tells("ready")

    text_of(victor, status=403)
    assert install(victor).status_code == 403
    assert not machine.home.extras_mark.exists()


@pytest.mark.parametrize("name", ["java", "unknown"])
def test_a_name_that_is_not_offered_is_not_found(olga: Client, machine: Machine, name: str) -> None:
    machine.tells("ready")

    assert install(olga, name).status_code == 404
    assert not machine.home.extras_mark.exists()


def test_a_disk_that_takes_no_file_is_told(
    olga: Client, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_where: Any) -> Any:
        raise OSError(28, "No space left on device")

    machine.tells("ready")
    monkeypatch.setattr("console.queries.extras.tempfile.mkstemp", full)

    answer = install(olga)

    assert answer.status_code == 503
    assert "nothing was asked for: No space left on device" in answer.content.decode()


def test_the_page_the_supervisor_and_the_command_know_the_same_extras() -> None:
    assert set(extras.EXTRAS) == set(NAMES)
    assert set(extras.EXTRAS) == set(OF_COMMANDS) - {"java"}
    assert Path("home") / extras.MARK == Home(Path("home")).extras_mark
    assert Path("home") / extras.TOLD == Home(Path("home")).extras_file
