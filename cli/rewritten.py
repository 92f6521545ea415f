"""Rewrites the asserts of all tests once, before the workers of a run start.

pytest rewrites a test file when it imports it, and stores the result beside the compiled modules.
In a new checkout all workers begin with the same files at the same time, so each would rewrite all
of them: a minute of CPU. Two processes with half of the files each take ten seconds.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.environment import ROOT

TESTS: Final = ROOT / "tests"
PROCESSES: Final = 2
COLLECT: Final = (
    *(sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
    *("-c", str(ROOT / "pyproject.toml"), f"--rootdir={ROOT}"),
)


def rewrite_tests() -> None:
    """Import the test files in processes that store the results, unless most are stored."""
    files = list(TESTS.rglob("test_*.py"))
    prefix = os.environ.get("PYTHONPYCACHEPREFIX")
    if prefix is None or len(stored(Path(prefix))) >= len(files) / 2:
        return
    # With CI=true, a missing extra is an error of the file that needs it; the run reports it.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    running = [
        subprocess.Popen(
            [*COLLECT, *map(str, part)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for part in divide(files)
    ]
    for process in running:
        process.wait()


def stored(prefix: Path) -> Sequence[Path]:
    """Return the test files that pytest has rewritten and stored."""
    return list(prefix.joinpath(*TESTS.parts[1:]).rglob("test_*-pytest-*.pyc"))


def divide(files: Sequence[Path]) -> list[list[Path]]:
    """Divide files into parts of about the same number of bytes, one for each process."""
    parts: list[list[Path]] = [[] for _ in range(PROCESSES)]
    sizes = [0] * PROCESSES
    for size, file in sorted(((file.stat().st_size, file) for file in files), reverse=True):
        least = sizes.index(min(sizes))
        parts[least].append(file)
        sizes[least] += size
    return parts
