"""kill -9 of a broker in the middle of produce: nothing acknowledged is lost, nothing is doubled.

A whole cluster as users start it; the supervisor brings the broker back and the client goes on.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient

from tests.cluster import Cluster, running_cluster
from tests.crash.traffic import PARTITIONS, Traffic, judge
from tests.interop.clients.confluent import ConfluentClient
from tests.oracles.confluent_client import QUIET, create_topic
from tests.scale import count

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 20_261_120
ROUNDS = count(2, 3, long=30)
# A round with fewer acknowledgements before the kill shows nothing.
LEAST_ACKNOWLEDGED = 10_000
# Written in the last moment before the fault, and while the broker is away.
LAST, MEANWHILE = 2_000, 3_000
BROKER = "broker-1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path / "home") as started:
        yield started


def test_a_killed_broker_keeps_what_it_acknowledged(
    cluster: Cluster, report: Callable[[str], None]
) -> None:
    rng = Random(SEED)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for number in range(ROUNDS):
        topic = f"round-{number}"
        create_topic(admin, topic, len(PARTITIONS), {})
        # Every third producer is a plain one, which may double but not lose.
        traffic = Traffic(cluster.bootstrap, topic, is_idempotent=number % 3 != 2)
        enough = LEAST_ACKNOWLEDGED + rng.randrange(5_000)

        rate = traffic.write_until_acknowledged(enough)
        traffic.write(LAST)
        acknowledged, in_flight = len(traffic.acknowledged), traffic.in_flight
        killed = cluster.kill(BROKER)
        traffic.write(MEANWHILE)
        away = cluster.wait_for_restart(BROKER, killed)
        traffic.finish()

        # The fault has struck: records were on their way, and another process serves now.
        assert in_flight > 0
        assert cluster.pid(BROKER) != killed
        judge(traffic, ConfluentClient().read(cluster.bootstrap, topic, PARTITIONS))
        report(
            f"round {number}, seed {SEED}: {acknowledged} acknowledged and {in_flight} in flight "
            f"at {rate:.0f} MB/s, back after {away:.1f} s"
        )
        admin.delete_topics([topic])[topic].result()
