"""A group is rolled from the classic to the consumer protocol and back while it reads.

Members of a real client are exchanged one by one; each partition has one owner at every moment,
every record is read, and committed offsets never go back.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.extras import requires
from tests.interop.group_story import (
    CONFLUENT,
    CONFLUENT_CONSUMER,
    JAVA_CLASSIC,
    JAVA_CONSUMER,
    PER_SECOND,
    Kind,
    Story,
    fill,
)
from tests.interop.homes import shared_bootstrap
from tests.oracles.confluent_client import QUIET, SECONDS
from tests.scale import IS_LONG

pytestmark = [pytest.mark.campaign, pytest.mark.interop, pytest.mark.slow]

long_only = pytest.mark.skipif(not IS_LONG, reason="this one is told in a long run only")
# Of each member: so slow that a step is over before the next tenth has been read.
ROLLED_PER_SECOND = PER_SECOND * 3 // 8
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
    classic: Kind,
    consumer: Kind,
    tmp_path: Path,
    unique: Callable[[str], str],
    report: Callable[[str], None],
) -> None:
    bootstrap, topic = shared_bootstrap(), unique("story")
    ends = fill(bootstrap, topic)
    often = replace(classic, settings={**classic.settings, **OFTEN})

    story = Story(often, tmp_path, bootstrap, topic=topic, ends=ends, per_second=ROLLED_PER_SECOND)
    verdict = story.play_rolled(consumer)

    report(f"{classic.name}: seconds of each owner, by partition\n{verdict.table()}")
    assert verdict.complaints == ()
    assert verdict.answers > 0
    assert verdict.owners() == {f"m{number}" for number in range(1, 10)}
    assert group_type(bootstrap, story.group) == "CLASSIC"
