"""A group whose assignor gives one partition to all its members is found out by the checker.

It is the proof that the stories of tests/interop/test_group_clients.py could fail.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import running_cluster
from tests.interop.group_story import BROKEN, Story, fill
from tests.interop.members.broken_assignor import TWICE

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOPIC = "story"
RECORDS = 60_000
DEFAULTS = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}


def test_a_partition_with_several_owners_is_found_out(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    environment = {"SAMSA_DEFAULTS": json.dumps(DEFAULTS)}
    with running_cluster(tmp_path / "home", environment=environment) as cluster:
        ends = fill(cluster.bootstrap, TOPIC, RECORDS)

        verdict = Story(BROKEN, tmp_path, cluster.bootstrap, topic=TOPIC, ends=ends).play_shared()

    report(verdict.table())
    assert any(f"partition {TWICE} was given to" in told for told in verdict.complaints)
    # Nothing but that one is wrong.
    assert not any(
        f"partition {place} was given to" in told
        for told in verdict.complaints
        for place in ends
        if place != TWICE
    )
