"""DATABASE_URL alone moves a home to PostgreSQL, and lets another host join."""

from pathlib import Path

import pytest

from tests.cluster import running_cluster
from tests.extras import requires
from tests.postgres import postgres_server

pytestmark = [pytest.mark.slow, requires("postgresql")]


def test_a_node_joins_by_the_database_and_both_outlive_its_restart(tmp_path: Path) -> None:
    with postgres_server() as server:
        there = {"DATABASE_URL": server.make_database("samsa")}
        with (
            running_cluster(tmp_path / "one", has_web=True, environment=there) as one,
            running_cluster(tmp_path / "two", environment=there) as two,
        ):
            server.restart()
            one.wait_healthy()
            two.wait_healthy()

            ids = [cluster.status()["brokers"][0]["id"] for cluster in (one, two)]

    assert ids == [1, 2]
    assert not (tmp_path / "one" / "cluster.db").exists()
