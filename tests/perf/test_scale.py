"""What a broker bears, in a short form: partitions, idle connections, churn, and a cluster at rest.

The full counts are for `./samsa bench scale` and `./samsa bench soak`. What is linear is held to
its target here already; times and CPU leave the room of two that a busy machine needs. What
clients leave behind and the CPU of an idle process are the same beside other work.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.broker_targets import Target
from bench.churn import Churn, in_a_child
from bench.crowd import crowd, possible
from bench.homes import found_clean
from bench.partitions import create, produce
from bench.processes import Process
from bench.scale import CHURN_MB, CHURN_PARTITIONS, CONNECTION_KIB, REST_MB, churn_round, restart
from bench.soak import SHARE_PERCENT, watch
from tests.cluster import running_cluster
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.fakes.listener import until
from tests.perf.brokers import one_broker
from tests.scale import count

pytestmark = [pytest.mark.campaign, pytest.mark.slow]

# What other programs on the machine may add to a time.
ROOM = 2
MB = 1e6
FEW_PARTITIONS = 100
MANY_PARTITIONS = 500
# A tenth of what 5,000 may take, and for a start what it takes with none.
CREATE_SECONDS = 3
RESTART_SECONDS = 3
IDLE_CONNECTIONS = 1_000
ROUNDS = 4
ROUND_SECONDS = count(3, 3, long=5)
REST_SECONDS = count(10, 10, long=300)
SETTLE_SECONDS = 5


def watched(broker: Target) -> Process:
    assert broker.pid is not None
    return Process(broker.pid)


@pytest.mark.alone
def test_a_broker_at_rest_with_a_hundred_partitions_is_small(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with one_broker(tmp_path) as (_cluster, broker):
        create(broker, "few", FEW_PARTITIONS)
        produce(broker, "few", range(FEW_PARTITIONS))

        resident = watched(broker).rss_bytes()

    report(f"{resident / MB:.1f} MB resident, target {REST_MB}")
    assert resident / MB <= REST_MB


@pytest.mark.alone
def test_many_partitions_are_made_in_time_and_restart_clean(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with one_broker(tmp_path) as (cluster, broker):
        created = create(broker, "many", MANY_PARTITIONS)
        produce(broker, "many", range(MANY_PARTITIONS))
        stopped, restarted = restart(broker, "many", MANY_PARTITIONS)

        assert found_clean(cluster.folder)
        assert cluster.pid("broker-1") != broker.pid

    report(f"{created:.1f} s to create, {stopped:.1f} s to stop, {restarted:.1f} s to restart")
    assert created <= CREATE_SECONDS * ROOM
    assert restarted <= RESTART_SECONDS * ROOM


def test_an_idle_connection_takes_little_memory(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    # A user may be allowed no more descriptors than some hundred connections take.
    count = possible(IDLE_CONNECTIONS)
    with one_broker(tmp_path) as (_cluster, broker):
        process = watched(broker)
        with crowd(broker.host, broker.port, 10):
            at_rest = process.rss_bytes()
        with crowd(broker.host, broker.port, count):
            crowded = process.rss_bytes()

    each = (crowded - at_rest) / 1024 / count
    report(f"{each:.2f} KiB each for {count}, target {CONNECTION_KIB}")
    assert each <= CONNECTION_KIB


def test_clients_that_come_and_go_leave_nothing_in_the_process(tmp_path: Path) -> None:
    with one_broker(tmp_path) as (_cluster, broker):
        topic = broker.make_topic("churn", CHURN_PARTITIONS)
        # All at once, so that the broker has all the threads that it will ever need for them.
        produce(broker, topic, range(CHURN_PARTITIONS))
        samples = [churn_round(broker, topic, ROUND_SECONDS) for _ in range(ROUNDS)]
    _first, warm, *later = samples

    assert sum(sample.came.raw for sample in samples) >= 1_000
    assert sum(sample.came.clients for sample in samples) >= 20
    assert {sample.descriptors for sample in later} == {warm.descriptors}
    assert {sample.threads for sample in later} == {warm.threads}
    assert (max(sample.rss_bytes for sample in later) - warm.rss_bytes) / MB <= CHURN_MB


def test_idempotent_clients_that_come_and_go_leave_no_task(tmp_path: Path) -> None:
    with broker_beside(tmp_path, topics={"churn": CHURN_PARTITIONS}) as beside:
        churn(beside, seconds=1)
        before = len(asyncio.all_tasks(beside.loop))

        came = churn(beside, seconds=4)

        assert came >= 200
        assert len(asyncio.all_tasks(beside.loop)) == before


def churn(beside: BesideBroker, *, seconds: float) -> int:
    """How many came; all of them are gone when it returns."""
    came = in_a_child(
        Churn(
            host=beside.running.host,
            port=beside.running.port,
            topic="churn",
            partitions=CHURN_PARTITIONS,
            seconds=seconds,
            is_idempotent=True,
        )
    )
    listener = beside.running.broker.listener
    gone = asyncio.run_coroutine_threadsafe(until(lambda: not listener.clients), beside.loop)
    gone.result()
    return came.raw + came.clients


def test_a_cluster_at_rest_rests(tmp_path: Path, report: Callable[[str], None]) -> None:
    with running_cluster(tmp_path, brokers=3, has_web=True) as cluster:
        # What follows a start is not rest yet.
        watch(cluster.supervisor.pid, SETTLE_SECONDS)

        rest = watch(cluster.supervisor.pid, REST_SECONDS)

    report(f"{rest.percent_in_all():.2f} % of a core in all, target {SHARE_PERCENT}")
    # The supervisor, the agent, three brokers and the web server.
    assert len(rest.before) >= 6
    assert rest.percent_in_all() <= SHARE_PERCENT * ROOM
