"""Runs work in a process other than the one that measures: a module started by its name.

Such a module takes a job as JSON on its standard input and prints what it saw.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from bench.broker_targets import ROOT

# Beyond the time that the job itself takes.
GRACE_SECONDS: Final = 60.0


def done_by(module: str, job: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
    """Return the module's result; fail with its output if it failed."""
    child = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps(dict(job)),
        capture_output=True,
        text=True,
        timeout=seconds + GRACE_SECONDS,
        # From where it is found, whichever interpreter this is.
        cwd=ROOT,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    seen: dict[str, Any] = json.loads(child.stdout)
    return seen
