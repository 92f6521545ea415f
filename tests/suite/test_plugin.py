"""What a run of workers leaves to others, and what it tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test import run_pytest

PROBE = """
import os, pytest
from tests.extras import requires

@pytest.mark.alone
def test_speed():
    assert "PYTEST_XDIST_WORKER" not in os.environ

@requires("java")
def test_with_a_machine():
    pass

@pytest.mark.campaign
def test_for_minutes():
    pass

@pytest.fixture(scope="module")
def worker():
    return os.environ.get("PYTEST_XDIST_WORKER")

SEEN = []

@pytest.mark.parametrize("number", range(4))
def test_share(worker, number):
    SEEN.append(number)
    assert SEEN == list(range(number + 1))
"""


def outcome(folder: Path, *arguments: str) -> dict[str, Any]:
    file = folder / "outcome.json"
    # Else the marks of the probe let the suite guess that it takes workers.
    workers = () if "-n" in arguments else ("-n", "0")
    run_pytest(
        [
            *(str(folder / "test_probe.py"), "-q", "-p", "no:cacheprovider"),
            *("-p", "tests.suite.plugin", f"--outcome={file}", *workers, *arguments),
        ]
    )
    told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return told


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_probe.py").write_text(PROBE, encoding="utf-8")
    # Else the runs below would take themselves for workers of this one.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    for variable in ("CI", "SAMSA_DESK"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.slow
def test_workers_leave_what_measures_time_to_a_run_of_its_own(folder: Path) -> None:
    beside = outcome(folder, "-n", "2")

    [speed] = beside["alone"]
    assert speed.endswith("::test_speed")
    assert beside["counts"]["failed"] == 0
    (folder / "alone.json").write_text(json.dumps(beside["alone"]), encoding="utf-8")

    # Also where the user chose the workers of the first part.
    alone = outcome(folder, "-n", "2", f"--alone={folder / 'alone.json'}")

    assert alone["counts"] == {"passed": 1, "failed": 0, "skipped": 0}
    assert alone["alone"] == []
    assert [name for name, _ in alone["slowest"]] == [speed]


@pytest.mark.slow
def test_without_workers_everything_runs_at_once(folder: Path) -> None:
    told = outcome(folder)

    assert sum(told["counts"].values()) == 7
    assert told["counts"]["failed"] == 0
    assert told["alone"] == []


@pytest.mark.slow
def test_the_desk_counts_what_it_leaves_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMSA_DESK", "1")

    told = outcome(folder)

    assert told["left_out"] == 2
    assert told["counts"] == {"passed": 5, "failed": 0, "skipped": 0}


ABSENT = "import nowhere.to_be_found\ndef test_it(): pass\n"


@pytest.fixture
def absent_extra(folder: Path) -> Path:
    """Write a file that imports the package of an extra which is not installed."""
    (folder / "test_absent.py").write_text(ABSENT, encoding="utf-8")
    (folder / "absent.py").write_text(
        "from tests.suite.extras import EXTRAS, Extra\n"
        "EXTRAS['absent'] = Extra(name='absent', is_here=lambda: False, ensure=lambda: None,"
        " missing='no absent: get it', packages=frozenset({'nowhere'}))\n",
        encoding="utf-8",
    )
    return folder


def outcome_without(folder: Path, *arguments: str) -> dict[str, Any]:
    return outcome(folder, str(folder / "test_absent.py"), "-p", "absent", *arguments)


@pytest.mark.slow
def test_a_file_that_imports_an_absent_extra_is_skipped_with_the_reason(
    absent_extra: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(absent_extra))

    told = outcome_without(absent_extra, "-rs")

    assert told["counts"]["failed"] == 0
    assert "absent" in told["needs"]
    assert "no absent: get it" in capfd.readouterr().out


@pytest.mark.slow
def test_the_desk_leaves_out_a_file_that_imports_an_absent_extra(
    absent_extra: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(absent_extra))
    monkeypatch.setenv("SAMSA_DESK", "1")

    told = outcome_without(absent_extra, "-n", "2")

    assert told["counts"]["failed"] == 0
    assert told["left_out"] == 3
    assert "no absent" not in capfd.readouterr().out


@pytest.mark.slow
def test_an_absent_package_of_no_extra_is_an_error(folder: Path) -> None:
    (folder / "test_probe.py").write_text(ABSENT, encoding="utf-8")

    assert outcome(folder)["counts"]["failed"] == 1


@pytest.mark.slow
def test_a_run_that_reaches_its_limit_of_failures_says_so(folder: Path) -> None:
    (folder / "test_probe.py").write_text("def test_it(): raise OSError\n", encoding="utf-8")

    assert outcome(folder, "-x")["is_stopped"]


@pytest.mark.slow
def test_a_spark_that_no_row_tells_of_is_refused(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    probe = "import pytest\n@pytest.fixture\ndef spark(): ...\ndef test_it(spark): ...\n"
    (folder / "test_probe.py").write_text(probe, encoding="utf-8")

    run_pytest([str(folder / "test_probe.py"), "-q", "-p", "tests.suite.plugin"])

    assert "add a row to TOGETHER" in capfd.readouterr().err
