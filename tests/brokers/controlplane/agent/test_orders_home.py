"""An order that is written into the database of a running home reaches its broker."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brokers.supervisor import holds
from tests.cluster import Cluster, running_cluster
from tests.extras import requires
from tests.suite.services import shared_postgres

pytestmark = pytest.mark.slow

SOON_S = 30
# What a page does, and what it reads then.
ASK = """
import json, time
from brokers.cluster.origins import Origin
from brokers.controlplane import orders, selectors, services
now_ms = lambda: int(1000 * time.time())
cluster = selectors.clusters()[0].cluster_id
place = orders.places(cluster_id=cluster)[{broker}]
services.ask_order(
    cluster_id=cluster, broker_id={broker}, broker_epoch=place.epoch, verb=orders.Verb({verb!r}),
    origin=Origin(actor="User:alice", session="digest"), now_ms=now_ms(),
)
deadline = time.monotonic() + {soon_s}
while (order := orders.newest(cluster_id=cluster, now_ms=now_ms())[{broker}]).is_open:
    assert time.monotonic() < deadline, order
    time.sleep(0.1)
held = lambda: orders.places(cluster_id=cluster)[{broker}].held_by
while bool(held()) != ({verb!r} == "stop"):
    assert time.monotonic() < deadline, held()
    time.sleep(0.1)
print(json.dumps([order.state.value, order.message, held()]))
"""


def ordered(cluster: Cluster, verb: str, *, broker: int = 1, database: str = "") -> Any:
    """Order as another process of the home does; return state, message, and who stopped it."""
    program = ASK.format(verb=verb, broker=broker, soon_s=SOON_S)
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", program],
        env={**os.environ, "SAMSA_HOME": str(cluster.folder), "DATABASE_URL": database},
        check=False,
        timeout=2 * SOON_S,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_a_broker_is_stopped_started_and_restarted(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "home") as cluster:
        first = cluster.pid("broker-1")

        stays = "broker-1 (broker 1) is stopped, and stays stopped until it is started by hand"
        assert ordered(cluster, "stop") == ["done", stays, "alice"]
        assert cluster.component("broker-1")["state"] == "stopped"
        assert holds.read(cluster.folder)["broker-1"].broker_id == 1
        # Also while no process could tell its number.
        assert ordered(cluster, "start") == ["done", "broker-1 (broker 1) serves", ""]
        second = cluster.pid("broker-1")
        assert ordered(cluster, "restart")[0] == "done"

        assert len({first, second, cluster.pid("broker-1")}) == 3
        assert holds.read(cluster.folder) == {}


@requires("postgresql")
def test_an_order_reaches_a_broker_of_another_host(tmp_path: Path) -> None:
    database = shared_postgres().make_database("orders")
    there = {"DATABASE_URL": database}
    with (
        running_cluster(tmp_path / "one", environment=there) as one,
        running_cluster(tmp_path / "two", environment=there) as two,
    ):
        here, first = one.pid("broker-1"), two.pid("broker-1")

        stays = "broker-1 (broker 2) is stopped, and stays stopped until it is started by hand"
        assert ordered(one, "stop", broker=2, database=database) == ["done", stays, "alice"]
        assert two.component("broker-1")["state"] == "stopped"
        started = ordered(one, "start", broker=2, database=database)

        assert started == ["done", "broker-1 (broker 2) serves", ""]
        assert two.pid("broker-1") != first
        assert one.pid("broker-1") == here
