"""A pytest plugin for `./samsa test`: chooses the number of worker processes of a run.

Most slow tests wait for other processes, so more workers than cores keep the cores busy. A worker
takes a second of CPU before its first test: a small run uses none.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from cli import durations
from cli.environment import ROOT

# With two, cores are idle while tests wait; more than three only take more memory.
WORKERS_PER_CORE: Final = 3
# With more, starting them takes longer than they save.
MAX_WORKERS: Final = 24
# The memory of a worker after thousands of tests, including the homes that it starts.
WORKER_BYTES: Final = 600 * 1024 * 1024
# For fewer seconds of tests, a further worker is not worth its start.
SECONDS_PER_WORKER: Final = 3.0
# Options that require tests in this process, or that run none.
SERIAL: Final = (
    *("usepdb", "trace", "lf", "stepwise", "stepwise_skip", "collectonly", "version", "help"),
    *("markers", "showfixtures", "show_fixtures_per_test", "setuponly", "setupplan", "tx"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("samsa", "how ./samsa test divides a run")
    group.addoption("--outcome", metavar="FILE", help="write what became of the run, as JSON")
    group.addoption("--alone", metavar="FILE", help="run only the tests that FILE lists, as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    options = early_config.known_args_namespace
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Workers get the same arguments, and so does a pytest that a test starts.
        return
    if options.alone:
        # Regardless of the user's choice for tests in parallel.
        if hasattr(options, "numprocesses"):
            args += ["-n", "0"]
        if getattr(options, "xmlpath", None):
            args.append(f"--junitxml={Path(options.xmlpath).with_suffix('.alone.xml')}")
    elif (workers := wanted(options)) > 1:
        args += ["-n", str(workers)]


def wanted(options: argparse.Namespace) -> int:
    """Return the number of workers for a run; 1 means none besides this process."""
    # Without xdist the option does not exist; if it was given, the user decides.
    is_chosen = getattr(options, "numprocesses", 0) is not None or options.dist != "no"
    if is_chosen or options.capture == "no" or any(getattr(options, name, 0) for name in SERIAL):
        return 1
    # The same default as in `cli.places`, which may run later.
    named = options.file_or_dir or [str(ROOT / "tests")]
    places = [place.partition("::") for place in named]
    known = durations.load()
    single = sum(known.get(f"{path}::{name}", durations.GUESS) for path, _, name in places if name)
    whole = durations.expected([Path(path) for path, _, name in places if not name], known)
    return min(most(), max(1, int((single + whole) / SECONDS_PER_WORKER)))


def most() -> int:
    """Return the most workers that this machine can run."""
    by_cores = WORKERS_PER_CORE * len(os.sched_getaffinity(0))
    return max(1, min(by_cores, MAX_WORKERS, available_bytes() // WORKER_BYTES))


def available_bytes() -> int:
    lines: Sequence[str] = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    found = next(line for line in lines if line.startswith("MemAvailable:"))
    return int(found.split()[1]) * 1024
