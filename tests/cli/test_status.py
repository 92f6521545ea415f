"""`status` says the same to people and to scripts, and its exit code says whether all is well."""

import re
import time
from pathlib import Path

import pytest

from cli.status import last_end, shown
from tests.cli.lifecycle import fake_home, samsa, told


@pytest.mark.slow
def test_a_healthy_home_is_told_as_the_contract_says(tmp_path: Path) -> None:
    with fake_home(tmp_path):
        result = samsa("status", "--json", "--home", tmp_path)

    assert result.exit_code == 0
    status = told(result)
    (broker,) = status["brokers"]
    assert set(broker) == {"id", "host", "port", "state", "pid"}
    assert status["bootstrap"] == f"127.0.0.1:{broker['port']}"
    assert status["console"].startswith("http://127.0.0.1:")
    assert [entry["name"] for entry in status["components"]] == [
        *("supervisor", "agent", "broker-1", "web", "collector")
    ]


@pytest.mark.slow
def test_people_see_addresses_and_states(tmp_path: Path) -> None:
    with fake_home(tmp_path):
        result = samsa("status", "--home", tmp_path)

    assert result.exit_code == 0
    assert "Kafka     127.0.0.1:" in result.stdout
    assert result.stdout.count("● healthy") == 5


@pytest.mark.slow
def test_a_home_with_a_failing_component_exits_1_and_shows_its_words(tmp_path: Path) -> None:
    with fake_home(tmp_path, "broker-1=crash"):
        result = samsa("status", "--home", tmp_path)

    assert result.exit_code == 1
    assert "ended with exit code 3" in result.stdout


def test_a_stopped_home_exits_1_with_the_same_keys(tmp_path: Path) -> None:
    result = samsa("status", "--json", "--home", tmp_path)

    assert result.exit_code == 1
    assert told(result) == {
        "bootstrap": None,
        "console": None,
        "gateway": None,
        "connect": None,
        "brokers": [],
        "components": [],
        "disks": [],
        "home": str(tmp_path),
    }
    assert result.stderr == f"{tmp_path} is not running\n"


def test_the_home_may_come_from_the_environment(tmp_path: Path) -> None:
    assert str(tmp_path) in samsa("status", SAMSA_HOME=str(tmp_path)).stderr


def test_a_full_disk_is_shown_with_what_to_do() -> None:
    disk = {"path": "/home", "state": "full", "reason": "disk full: 0 MiB of 9 MiB are free"}
    home: dict[str, object] = {
        "home": "/home",
        "bootstrap": "",
        "console": None,
        "brokers": [],
        "components": [],
    }

    assert "disk full: 0 MiB of 9 MiB are free" in shown({**home, "disks": [disk]})
    assert "disk" not in shown({**home, "disks": [{**disk, "state": "healthy"}]})


@pytest.mark.parametrize(
    ("restarts", "age_s", "said"),
    [
        (1, 10, r"was killed by signal 9 \(SIGKILL\) at \d\d:\d\d:\d\d"),
        (4, 2 * 86_400, r"was killed .* at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(end 4 of it\)"),
    ],
)
def test_a_process_that_came_back_says_how_it_ended(restarts: int, age_s: int, said: str) -> None:
    at_ms = int(1000 * (time.time() - age_s))
    end = {"how": "was killed by signal 9 (SIGKILL)", "at_ms": at_ms}

    assert re.fullmatch(said, last_end({"restarts": restarts, "last_end": end}))
