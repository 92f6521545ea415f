"""Format, lint and types, so that one command checks everything."""

import subprocess
import sys

import pytest

from tests.tidy.project import ROOT

# mypy without a cache, as in a fresh clone, takes minutes beside other tests.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["mypy"],
    ],
    ids=["format", "lint", "types"],
)
def test_the_checker_has_nothing_to_say(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
