"""The sum of the two test runs."""

from collections import Counter
from pathlib import Path

from cli.test import counts


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
