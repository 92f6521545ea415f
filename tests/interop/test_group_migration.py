"""A group is rolled from the classic to the consumer protocol and back while it reads.

Members of a real client are exchanged one by one; each partition has one owner at every moment,
every record is read, and committed offsets never go back.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.cluster import running_cluster
from tests.extras import requires
from tests.interop.group_story import (
    BROKER_SETTINGS,
    CONFLUENT,
    CONFLUENT_CONSUMER,
    JAVA_CLASSIC,
    JAVA_CONSUMER,
    Kind,
    Story,
    fill,
)
from tests.oracles.confluent_client import QUIET, SECONDS
from tests.scale import IS_LONG

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its broker runs and its topic is written once.
    pytest.mark.xdist_group("group-migration"),
]

long_only = pytest.mark.skipif(not IS_LONG, reason="this one is told in a long run only")
TOPIC = "story"
# Of each member: so slow that a step is over before the next tenth has been read.
PER_SECOND = 2500
# In which members keep what they have. That of librdkafka cannot be rolled, here as with Kafka: it
# writes user data into assignments, by which the coordinator knows an assignor that is not its own.
JAVA_COOPERATIVE = replace(
    JAVA_CLASSIC,
    name="java-cooperative",
    settings={
        "partition.assignment.strategy": (
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
        )
    },
)
# So that classic members learn of a rebalance as soon as others do.
OFTEN = {"heartbeat.interval.ms": 500}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[int, int]]]:
    settings = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        **BROKER_SETTINGS,
    }
    environment = {"SAMSA_DEFAULTS": json.dumps(settings)}
    home = tmp_path_factory.mktemp("migration") / "home"
    with running_cluster(home, brokers=1, environment=environment) as cluster:
        yield cluster.bootstrap, fill(cluster.bootstrap, TOPIC)


def group_type(bootstrap: str, group: str) -> str:
    """What kind of a group the broker lists it as."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    listed = admin.list_consumer_groups(request_timeout=SECONDS).result().valid
    return {each.group_id: each.type.name for each in listed}[group]


@pytest.mark.parametrize(
    ("classic", "consumer"),
    [
        pytest.param(CONFLUENT, CONFLUENT_CONSUMER, id=CONFLUENT.name),
        *(
            pytest.param(
                java, JAVA_CONSUMER, id=java.name, marks=(requires(*java.needs), long_only)
            )
            for java in (JAVA_CLASSIC, JAVA_COOPERATIVE)
        ),
    ],
)
def test_a_group_is_rolled_to_the_other_protocol_and_back(
    written: tuple[str, dict[int, int]],
    classic: Kind,
    consumer: Kind,
    tmp_path: Path,
    report: Callable[[str], None],
) -> None:
    bootstrap, ends = written
    often = replace(classic, settings={**classic.settings, **OFTEN})

    story = Story(often, tmp_path, bootstrap, topic=TOPIC, ends=ends, per_second=PER_SECOND)
    verdict = story.play_rolled(consumer)

    report(f"{classic.name}: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()
    assert verdict.answers > 0
    assert verdict.owners() == {f"m{number}" for number in range(1, 10)}
    assert group_type(bootstrap, f"{TOPIC}-{classic.name}") == "CLASSIC"
