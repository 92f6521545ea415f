"""A plugin that pytest loads for `./samsa test`: how many processes a run is worth.

Most tests that take long wait for other processes, so more workers than cores keep the cores
busy. A worker costs a second of CPU before its first test: a small run goes without.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from cli import durations
from cli.environment import ROOT

# Two a core leave cores idle while tests wait; beyond three only memory grows.
WORKERS_PER_CORE: Final = 3
# Beyond this the workers' starts take longer than they save.
MAX_WORKERS: Final = 24
# What a worker takes after thousands of tests, with the homes that it starts.
WORKER_BYTES: Final = 600 * 1024 * 1024
# Below this many seconds of tests a further worker costs more than it brings.
SECONDS_PER_WORKER: Final = 3.0
# Options under which tests must run in this process, or nothing runs at all.
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
        # A worker reads the same arguments, and so does a pytest that one of its tests starts.
        return
    if options.alone:
        # Whatever the user chose for the tests that run beside each other.
        if hasattr(options, "numprocesses"):
            args += ["-n", "0"]
        if getattr(options, "xmlpath", None):
            args.append(f"--junitxml={Path(options.xmlpath).with_suffix('.alone.xml')}")
    elif (workers := wanted(options)) > 1:
        args += ["-n", str(workers)]


def wanted(options: argparse.Namespace) -> int:
    """Return how many workers a run is worth; one means none beside this process."""
    # Without xdist there is no such option; with one that was given, it is the user's choice.
    is_chosen = getattr(options, "numprocesses", 0) is not None or options.dist != "no"
    if is_chosen or options.capture == "no" or any(getattr(options, name, 0) for name in SERIAL):
        return 1
    # What `cli.places` says too, which may be asked later.
    named = options.file_or_dir or [str(ROOT / "tests")]
    places = [place.partition("::") for place in named]
    known = durations.load()
    single = sum(known.get(f"{path}::{name}", durations.GUESS) for path, _, name in places if name)
    whole = durations.expected([Path(path) for path, _, name in places if not name], known)
    return min(most(), max(1, int((single + whole) / SECONDS_PER_WORKER)))


def most() -> int:
    """Return how many workers this machine takes."""
    by_cores = WORKERS_PER_CORE * len(os.sched_getaffinity(0))
    return max(1, min(by_cores, MAX_WORKERS, available_bytes() // WORKER_BYTES))


def available_bytes() -> int:
    lines: Sequence[str] = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    found = next(line for line in lines if line.startswith("MemAvailable:"))
    return int(found.split()[1]) * 1024
