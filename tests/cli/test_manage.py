"""`manage` is Django's own command line, in the home."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.lifecycle import samsa
from tests.cluster import ROOT


@pytest.mark.slow
def test_djangos_commands_run_in_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = "from django.conf import settings; print(settings.SAMSA_HOME)"

    done = subprocess.run(
        [
            *(sys.executable, "-m", "cli", "manage", "--home", str(home)),
            *("shell", "--no-imports", "-c", program),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == f"{home}\n", done.stderr


def test_a_home_that_cannot_be_is_refused(tmp_path: Path) -> None:
    Path(tmp_path, "file").touch()

    assert "cannot be written" in samsa("manage", "--home", tmp_path / "file", "check").stderr
