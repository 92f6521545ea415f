"""A home on a full disk: topics are deleted, processes come back, `down` and `up` go, no loss.

The disk is a tmpfs in a mount namespace of its own, which ends with all of its processes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import ROOT
from tests.scale import IS_LONG

pytestmark = [pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(600)]

# The namespace's first process has the others killed when it ends; a user without rights gets them
# within the namespace only.
ALONE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
NAMESPACE = ALONE if os.geteuid() == 0 else [*ALONE, "--user", "--map-root-user"]
# The two that hold data, and every other kind of process with `./samsa test --long`.
KINDS = ["broker-1", "agent"]
ALL_KINDS = [*KINDS, "web", "gateway-1", "collector", "valkey"]


def refusal(folder: Path) -> str:
    """Return why no disk can be mounted here; empty if one can."""
    probe = [*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def test_a_home_lives_on_a_full_disk_and_loses_nothing(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    reason = refusal(tmp_path)
    if reason:
        pytest.skip(f"no file system of its own may be mounted here: {reason}")
    kinds = ALL_KINDS if IS_LONG else KINDS

    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-P", "-m", "tests.crash.full_disk", str(tmp_path), *kinds],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    report(", ".join(f"{what} {value}" for what, value in told.items()))
