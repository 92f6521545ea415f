"""`./samsa test`: sets up what the tests need and runs them.

Without arguments two runs follow each other: everything that may share the machine, on all cores;
then, alone, what measures time. Figures taken beside other work would say nothing.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from cli.environment import ROOT, Environment
from cli.extras import ensure_extras
from cli.installer import InstallError

# pytest's exit codes that are no failure: all passed; nothing was selected.
PASSED, NOTHING_SELECTED = 0, 5


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--long", "is_long", is_flag=True, help="Repeat far more often than CI does.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...], *, is_long: bool) -> None:
    """Run the tests, or one pytest with the ARGUMENTS given."""
    try:
        Environment().ensure("test")
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    if not ensure_extras():
        raise click.ClickException("CI as root must have everything the tests need")
    if is_long:
        os.environ["SAMSA_LONG"] = "1"
    if arguments:
        sys.exit(run_pytest(arguments))
    sys.exit(run_all())


def run_pytest(arguments: Sequence[str]) -> int:
    """Run pytest where the user is, because file names among its arguments are the user's."""
    # Hypothesis would leave its folder there too.
    environment = {"HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"), **os.environ}
    project = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", "-p", "cli.places"]
    command = [sys.executable, "-P", "-m", "pytest", *project, *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def run_all() -> int:
    """Run both parts, say the sum in one line, return the exit code of the first that failed."""
    cores = len(os.sched_getaffinity(0))
    started = time.monotonic()
    totals: Counter[str] = Counter()
    exit_codes = []
    with tempfile.TemporaryDirectory(prefix="samsa-test-") as folder:
        for name, selection in (
            ("beside-others", ["-n", str(cores), "-m", "not alone"]),
            ("alone", ["-m", "alone"]),
        ):
            results = Path(folder, f"{name}.xml")
            exit_codes.append(run_pytest([*selection, f"--junitxml={results}"]))
            totals += counts(results)
    click.echo(
        f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped"
        f" in {time.monotonic() - started:.1f} s"
    )
    return next((code for code in exit_codes if code not in {PASSED, NOTHING_SELECTED}), 0)


def counts(results: Path) -> Counter[str]:
    """Add up the suites of a JUnit file; a run that wrote none counts as one failure."""
    if not results.exists():
        return Counter(failed=1)
    found: Counter[str] = Counter()
    # The file is our own pytest's, written a moment ago.
    for suite in ET.parse(results).getroot().iter("testsuite"):  # noqa: S314
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        found["failed"] += failed
        found["skipped"] += skipped
        found["passed"] += int(suite.get("tests", 0)) - failed - skipped
    return found
