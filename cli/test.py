"""`./samsa test`: sets up what the tests need and runs them.

There are two pytest runs: first the tests that can share the machine, in workers; then, alone,
those that measure time, whose figures other work would distort. A selection that is too small for
workers, or must not use them, is one run.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from cli.environment import ROOT, Environment
from cli.installer import InstallError
from cli.rewritten import rewrite_tests
from tests.suite.extras import EXTRAS, ensure_extras

# pytest's exit codes without a failure: all passed; none selected.
PASSED, NOTHING_SELECTED = 0, 5
FAILED: Final = 1
INTERRUPTED: Final = 2
# From this duration on, a run explains where the time went.
SECONDS_WORTH_EXPLAINING: Final = 30
SLOWEST_SHOWN: Final = 10
PLUGINS: Final = ("-p", "cli.places", "-p", "cli.workers")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: ./samsa test tests/cli",
)
@click.option("--long", "is_long", is_flag=True, help="Repeat far more often than CI does.")
@click.option(
    "--affected",
    "is_affected",
    is_flag=True,
    help="Run what a change can break: its packages, those that import them, and the house rules.",
)
@click.option(
    "--since",
    metavar="REV",
    help="Compare with this revision. Default: HEAD if a file is not committed, else main.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(
    arguments: tuple[str, ...], *, is_long: bool, is_affected: bool, since: str | None
) -> None:
    """Run the tests, or those that pytest's ARGUMENTS select.

    Where no file is named, campaigns and tests that need a browser, a JVM, or a foreign client or
    server are left to CI=true.
    """
    if since is not None and not is_affected:
        raise click.UsageError("--since applies to --affected only: give both")
    try:
        Environment().ensure("test")
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    has_places = any(Path(each.partition("::")[0]).exists() for each in arguments)
    is_desk = os.environ.get("CI") != "true" and (is_affected or not has_places)
    if is_desk:
        wanted: Collection[str] = [name for name in EXTRAS if not EXTRAS[name].is_foreign]
    else:
        wanted = needed(arguments) if has_places else EXTRAS
    if not ensure_extras(wanted):
        raise click.ClickException("CI as root must have everything the tests need")
    if not has_places and not is_affected:
        rewrite_tests()
    # tests/scale.py reads them in child processes.
    os.environ |= {"SAMSA_DESK": "1"} if is_desk else {}
    os.environ |= {"SAMSA_LONG": "1"} if is_long else {}
    if is_affected:
        choice = affected(since)
        sys.exit(run([*arguments, *choice["places"]], alone_in=choice["alone_in"]))
    sys.exit(run(arguments))


def affected(since: str | None) -> Mapping[str, Sequence[str]]:
    """Find the tests that a change can break, and print the reasons."""
    # Not imported: it reads the tests, which need the packages of tests.
    command = [sys.executable, "-P", "-m", "tests.suite.affected"]
    asked = subprocess.run(
        [*command, *(["--since", since] if since else [])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        raise click.ClickException(asked.stderr.strip())
    choice: Mapping[str, Sequence[str]] = json.loads(asked.stdout)
    click.echo("; ".join(choice["reasons"]))
    return {**choice, "places": [str(ROOT / place) for place in choice["places"]]}


def needed(arguments: Sequence[str]) -> list[str]:
    """Return the extras that the selected tests need, without running them."""
    if all(extra.is_here() for extra in EXTRAS.values()):
        return []
    with tempfile.TemporaryDirectory(prefix="samsa-test-") as folder:
        outcome = Path(folder, "outcome.json")
        run_pytest([*arguments, "--collect-only", "-q", f"--outcome={outcome}"], is_shown=False)
        if not outcome.exists():
            # A wrong option, which the run itself reports.
            return []
        told: Mapping[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
    return [name for name in EXTRAS if name in told["needs"]]


def run_pytest(arguments: Sequence[str], *, is_shown: bool = True) -> int:
    """Run pytest in the user's folder, since file names among its arguments refer to it."""
    # Hypothesis would create its folder there, too.
    environment = {"HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"), **os.environ}
    project = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}", *PLUGINS]
    command = [sys.executable, "-P", "-m", "pytest", *project, *arguments]
    if is_shown:
        return subprocess.run(command, env=environment, check=False).returncode
    # With CI=true, a missing extra is an error of the file that needs it.
    environment.pop("CI", None)
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The result of one run of pytest, as written by `tests/suite/plugin.py`."""

    code: int
    counts: Counter[str]
    slowest: Sequence[tuple[str, float]] = ()
    # The ids of selected tests that must run alone, and did not run.
    alone: Sequence[str] = ()
    # The number of tests left out because they need more than this machine's Python or patience.
    left_out: int = 0
    is_stopped: bool = False


def run(arguments: Sequence[str], *, alone_in: Sequence[str] = ("",)) -> int:
    """Run both parts, print the sum, and return the exit code of the first that failed.

    Of the tests that must run alone, run only those whose path begins with one of `alone_in`.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="samsa-test-") as folder:
        parts = [run_part(arguments, Path(folder, "outcome.json"))]
        alone = [name for name in parts[0].alone if name.startswith(tuple(alone_in))]
        if alone and not parts[0].is_stopped:
            chosen = Path(folder, "alone.json")
            chosen.write_text(json.dumps(alone), encoding="utf-8")
            limited = [*arguments, f"--alone={chosen}"]
            last = run_part(limited, Path(folder, "outcome-alone.json"))
            if last.code == NOTHING_SELECTED:
                # The first run has found these ids, so not to find them again is a failure.
                last = replace(last, code=FAILED, counts=Counter(failed=len(alone)))
                click.echo(f"{len(alone)} tests that must run alone were not found again", err=True)
            parts.append(last)
    tell(parts, time.monotonic() - started)
    codes = [part.code for part in parts if part.code != NOTHING_SELECTED]
    return next((code for code in codes if code != PASSED), min(codes, default=NOTHING_SELECTED))


def run_part(arguments: Sequence[str], outcome: Path) -> Part:
    code = run_pytest([*arguments, f"--outcome={outcome}"])
    if not outcome.exists():
        # There was no session: --help, a wrong option, or a failure of pytest itself.
        failed = code not in {PASSED, NOTHING_SELECTED}
        return Part(code=code, counts=Counter(failed=int(failed)), is_stopped=failed)
    told: Mapping[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
    return Part(
        code=code,
        counts=Counter(told["counts"]),
        slowest=[(name, seconds) for name, seconds in told["slowest"]],
        alone=told["alone"],
        left_out=told["left_out"],
        is_stopped=told["is_stopped"] or code == INTERRUPTED,
    )


def tell(parts: Sequence[Part], seconds: float) -> None:
    """Print a few lines on slow tests, on tests left out, and the sum."""
    if seconds >= SECONDS_WORTH_EXPLAINING:
        slowest = sorted((row for part in parts for row in part.slowest), key=lambda row: -row[1])
        click.echo("the slowest:")
        for name, took in slowest[:SLOWEST_SHOWN]:
            click.echo(f"{took:8.1f} s  {name}")
    if parts[0].left_out:
        click.echo(
            f"left out: {parts[0].left_out} campaigns and tests that need a browser, a JVM, or a"
            " foreign client or server; CI=true ./samsa test runs them, and so does naming their"
            " files"
        )
    totals = sum((part.counts for part in parts), Counter[str]())
    click.echo(
        f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped"
        f" in {seconds:.1f} s"
    )
