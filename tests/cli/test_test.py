"""pytest runs where the user is, with the settings of the project, and its results add up."""

from collections import Counter
from pathlib import Path

import pytest

from cli.test import counts, run_pytest

# A test in the user's folder that passes under the project's own settings only.
PROBE = """
from pathlib import Path
from tests.tidy.project import ROOT

def test_settings(request):
    assert Path.cwd() == Path(__file__).parent
    assert request.config.rootpath == ROOT
    assert request.config.inipath == ROOT / "pyproject.toml"
    assert request.config.getini("xfail_strict")
"""


@pytest.mark.slow
def test_files_are_named_relative_to_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    exit_code = run_pytest(["probe.py", "-q", "-p", "no:cacheprovider", "--junitxml", "r.xml"])

    assert exit_code == 0
    assert counts(tmp_path / "r.xml") == Counter(passed=1, failed=0, skipped=0)


def test_counts_add_up_over_all_suites(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2"/>'
        '<testsuite tests="1" failures="0" errors="0" skipped="0"/></testsuites>',
        encoding="utf-8",
    )

    assert counts(results) == Counter(passed=6, failed=2, skipped=2)


def test_a_run_that_ended_without_results_is_a_failure(tmp_path: Path) -> None:
    assert counts(tmp_path / "missing.xml") == Counter(failed=1)
