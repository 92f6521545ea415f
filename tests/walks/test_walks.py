"""A request walks through no more files than a table allows, whose numbers may only fall."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import pytest

from tests.cluster import ROOT

pytestmark = pytest.mark.slow
# walk: the most files, and those of its middleware. Numbers fall with their walks and never rise.
MOST: Final = {
    "Produce": (23, 0),
    "JoinGroup": (32, 0),
    "REST produce": (20, 11),
    "console page": (18, 12),
}
# A row that is farther above its walk has to be lowered.
SLACK: Final = 2


def test_no_walk_is_longer_than_its_row(walks: Mapping[str, tuple[list[str], list[str]]]) -> None:
    for name, (files, middleware) in walks.items():
        most, most_middleware = MOST[name]

        assert most - SLACK <= len(files) <= most, f"{name}: {len(files)} {files}"
        assert len(middleware) <= most_middleware, f"{name}: {middleware}"


@pytest.fixture(scope="module")
def walks() -> Mapping[str, tuple[list[str], list[str]]]:
    # In a process of its own: what other tests have left open is no part of a walk.
    done = subprocess.run(
        [sys.executable, "-m", "tests.walks", "--json"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    found: dict[str, tuple[list[str], list[str]]] = json.loads(done.stdout)
    return found
