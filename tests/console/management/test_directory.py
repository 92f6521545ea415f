"""Where the collector finds its brokers."""

from pathlib import Path

import pytest
from django.db import connections

from brokers.controlplane import models
from console.management.directory import FOR_EVER, DatabaseDirectory
from console.monitoring.daemon import DirectoryFailed, NoClusterYet
from tests.console import cluster_rows


@pytest.fixture
def directory(tmp_path: Path) -> DatabaseDirectory:
    file = tmp_path / "cluster-id"
    file.write_text(f"{cluster_rows.CLUSTER_ID}\n", encoding="ascii")
    return DatabaseDirectory(file)


def test_it_tells_brokers_retention_and_what_has_no_leader(directory: DatabaseDirectory) -> None:
    cluster = cluster_rows.cluster()
    cluster_rows.broker(cluster, 1)
    cluster_rows.broker(cluster, 2, is_fenced=True)
    cluster_rows.topic(cluster, "orders", configs={"retention.ms": "5000"})
    cluster_rows.topic(cluster, "state", partitions=2, leader=2)
    cluster_rows.topic(cluster, "table", configs={"cleanup.policy": "compact"})
    cluster_rows.topic(cluster, "both", configs={"cleanup.policy": "compact,delete"})

    told = directory.read()

    assert [broker.id for broker in told.brokers] == [1, 2]
    assert told.offline_partitions == 2
    assert told.retention_ms == {"orders": 5000, "table": FOR_EVER}
    assert told.default_retention_ms == 604_800_000


def test_a_cluster_at_rest_is_not_read_again(directory: DatabaseDirectory) -> None:
    cluster = cluster_rows.cluster()
    cluster_rows.broker(cluster, 1)
    first = directory.read()

    assert directory.read() is first

    models.Cluster.objects.update(version=8)
    cluster_rows.broker(cluster, 2)
    assert [broker.id for broker in directory.read().brokers] == [1, 2]


def test_a_home_without_a_cluster_is_new_and_not_broken(tmp_path: Path) -> None:
    with pytest.raises(NoClusterYet, match="has not made its cluster yet"):
        DatabaseDirectory(tmp_path / "cluster-id").read()


def test_a_cluster_that_the_database_does_not_have_is_named(directory: DatabaseDirectory) -> None:
    with pytest.raises(DirectoryFailed, match=f"no cluster '{cluster_rows.CLUSTER_ID}'"):
        directory.read()


def test_a_database_that_does_not_answer_is_said(directory: DatabaseDirectory) -> None:
    cluster_rows.cluster()
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")

    with pytest.raises(DirectoryFailed, match="the database does not answer: no such table"):
        directory.read()
