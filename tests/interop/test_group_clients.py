"""Every client's group shares a topic, and lives through a kill, a leave and a late join.

Each partition has one owner at every moment, every record is read, and committed offsets never go
back; tests/interop/group_story.py tells the story and tests/interop/ownership.py judges it.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.cluster import running_cluster
from tests.extras import requires
from tests.interop.clients.target import KAFKA
from tests.interop.group_story import COOPERATIVE, KINDS, Kind, Story, fill
from tests.interop.homes import BROKERS, DEFAULTS, shared_bootstrap
from tests.scale import IS_LONG
from tests.suite.shared import unique_name

pytestmark = [pytest.mark.campaign, pytest.mark.interop, pytest.mark.slow]

long_only = pytest.mark.skipif(not IS_LONG, reason="this one is told in a long run only")

TOPIC = "story"
# Kafka's default; the shared home has none.
DELAY = {"group.initial.rebalance.delay.ms": "3000"}
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A topic that is full of records, and stays as it is."""

    bootstrap: str
    topic: str
    ends: Mapping[int, int]


@cache
def written() -> Written:
    """Write a topic in the shared home, once per process."""
    bootstrap, topic = shared_bootstrap(), unique_name(TOPIC, f"{__name__} {os.getpid()}")
    return Written(bootstrap=bootstrap, topic=topic, ends=fill(bootstrap, topic))


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, id=kind.name, marks=requires(*kind.needs)) for kind in KINDS),
        pytest.param(COOPERATIVE, id=COOPERATIVE.name, marks=long_only),
    ],
)
def test_a_group_shares_a_topic_whatever_befalls_its_members(
    kind: Kind, tmp_path: Path, report: Report
) -> None:
    there = written()

    verdict = Story(kind, tmp_path, there.bootstrap, topic=there.topic, ends=there.ends).play()

    report(f"{kind.name}: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()
    assert verdict.answers > 0
    assert verdict.owners() == {"m1", "m2", "m3", "m4"}


@long_only
def test_it_does_so_with_the_default_delay_of_a_first_rebalance(
    tmp_path: Path, report: Report
) -> None:
    kind = KINDS[0]
    environment = {"SAMSA_DEFAULTS": json.dumps({**DEFAULTS, **DELAY})}
    with running_cluster(tmp_path / "home", brokers=BROKERS, environment=environment) as cluster:
        ends = fill(cluster.bootstrap, TOPIC)

        verdict = Story(kind, tmp_path, cluster.bootstrap, topic=TOPIC, ends=ends).play()

    report(f"{kind.name}, with a delay: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()


@long_only
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=kind.name, marks=requires(*kind.needs, *KAFKA.needs))
        for kind in (*KINDS, COOPERATIVE)
    ],
)
def test_the_judge_has_the_same_story(kind: Kind, tmp_path: Path, report: Report) -> None:
    with KAFKA.start(tmp_path, 1) as kafka:
        ends = fill(kafka.bootstrap, TOPIC)

        verdict = Story(kind, tmp_path, kafka.bootstrap, topic=TOPIC, ends=ends).play()

    report(f"{kind.name}, Kafka: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()
