"""A group whose assignor gives one partition to all its members is found out by the checker.

It is the proof that the stories of tests/interop/test_group_clients.py could fail.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.group_story import BROKEN, Story, fill
from tests.interop.homes import shared_bootstrap
from tests.interop.members.broken_assignor import TWICE

pytestmark = [pytest.mark.interop, pytest.mark.slow]

RECORDS = 12_000


def test_a_partition_with_several_owners_is_found_out(
    tmp_path: Path, unique: Callable[[str], str], report: Callable[[str], None]
) -> None:
    bootstrap, topic = shared_bootstrap(), unique("story")
    ends = fill(bootstrap, topic, RECORDS)

    verdict = Story(BROKEN, tmp_path, bootstrap, topic=topic, ends=ends).play_shared()

    report(verdict.table())
    assert any(f"partition {TWICE} was given to" in told for told in verdict.complaints)
    # Nothing but that one is wrong.
    assert not any(
        f"partition {place} was given to" in told
        for told in verdict.complaints
        for place in ends
        if place != TWICE
    )
