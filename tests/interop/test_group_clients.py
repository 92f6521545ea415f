"""Every client's group shares a topic, and lives through a kill, a leave and a late join.

Each partition has one owner at every moment, every record is read, and committed offsets never go
back; tests/interop/group_story.py tells the story and tests/interop/ownership.py judges it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import running_cluster
from tests.extras import requires
from tests.interop.clients.target import KAFKA
from tests.interop.group_story import BROKER_SETTINGS, COOPERATIVE, KINDS, Kind, Story, fill
from tests.scale import IS_LONG

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
]

long_only = pytest.mark.skipif(not IS_LONG, reason="this one is told in a long run only")
# A story mostly waits, so that two workers tell them at the same time. Each starts brokers once.
TELLERS = tuple(pytest.mark.xdist_group(f"group-clients-{number}") for number in range(2))

TOPIC = "story"
BROKERS = 3
# The first is what every suite sets, the second is Kafka's default.
NO_DELAY, DELAY = ({"group.initial.rebalance.delay.ms": ms} for ms in ("0", "3000"))
Report = Callable[[str], None]


@contextmanager
def brokers(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Start brokers of ours and return where they are."""
    defaults = {"auto.create.topics.enable": "false", **BROKER_SETTINGS, **settings}
    environment = {"SAMSA_DEFAULTS": json.dumps(defaults)}
    with running_cluster(folder / "home", brokers=BROKERS, environment=environment) as cluster:
        yield cluster.bootstrap


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[int, int]]]:
    with brokers(tmp_path_factory.mktemp("groups"), NO_DELAY) as bootstrap:
        yield bootstrap, fill(bootstrap, TOPIC)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=kind.name, marks=(requires(*kind.needs), TELLERS[number % 2]))
        for number, kind in enumerate(KINDS)
    ]
    + [pytest.param(COOPERATIVE, id=COOPERATIVE.name, marks=(long_only, TELLERS[0]))],
)
def test_a_group_shares_a_topic_whatever_befalls_its_members(
    written: tuple[str, dict[int, int]], kind: Kind, tmp_path: Path, report: Report
) -> None:
    bootstrap, ends = written

    verdict = Story(kind, tmp_path, bootstrap, topic=TOPIC, ends=ends).play()

    report(f"{kind.name}: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()
    assert verdict.answers > 0
    assert verdict.owners() == {"m1", "m2", "m3", "m4"}


@long_only
@TELLERS[0]
def test_it_does_so_with_the_default_delay_of_a_first_rebalance(
    tmp_path: Path, report: Report
) -> None:
    kind = KINDS[0]
    with brokers(tmp_path, DELAY) as bootstrap:
        ends = fill(bootstrap, TOPIC)

        verdict = Story(kind, tmp_path, bootstrap, topic=TOPIC, ends=ends).play()

    report(f"{kind.name}, with a delay: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()


@long_only
@TELLERS[0]
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
