"""Without a file named, the tests of the project are meant, wherever the user stands."""

from pathlib import Path

import pytest

from cli.environment import ROOT
from cli.test import run_pytest

# Notes what pytest was going to search, and stops it there.
PROBE = """
from pathlib import Path
import pytest

def pytest_configure(config):
    Path("places").write_text("\\n".join(config.args))
    pytest.exit(returncode=0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["-k", "here.py", "--ignore", "here.py"], [str(ROOT / "tests")]),
        (["-k", "x", "here.py::test_x"], ["here.py::test_x"]),
    ],
)
def test_the_project_is_tested_unless_a_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], places: list[str]
) -> None:
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    (tmp_path / "here.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    exit_code = run_pytest(["-p", "probe", *arguments])

    assert exit_code == 0
    assert (tmp_path / "places").read_text(encoding="utf-8").splitlines() == places
