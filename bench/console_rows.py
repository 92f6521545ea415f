"""The databases of a console under a benchmark: a cluster at its limits, and people signed in.

A process of its own, because Django reads its settings once. It takes a job as JSON on its standard
input and prints, as JSON, what browsers of these people send.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.console_feeds import BROKERS, leader_of, topic_name
from brokers.key_files import write_keys

if TYPE_CHECKING:
    # At run time only once Django is set up.
    from brokers.controlplane.models import Cluster

SESSION_KEY: Final = f"1.{'5e' * 32}"
# What one transaction of SQLite takes well.
BATCH: Final = 5_000
CHANGES: Final = 500


def main() -> None:
    job = json.loads(sys.stdin.readline())
    folder = Path(job["folder"])
    # What an agent would have written.
    write_keys(folder / "secrets" / "session", (SESSION_KEY,))
    (folder / "cluster-id").write_text(f"{job['cluster_id']}\n", encoding="ascii")
    os.environ |= {"SAMSA_HOME": str(folder), "DJANGO_SETTINGS_MODULE": "gateway.settings"}
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    for alias in ("default", "cluster", "connect"):
        call_command("migrate", database=alias, verbosity=0, interactive=False, skip_checks=True)
    make_cluster(job)
    sys.stdout.write(json.dumps(make_people(job["people"])))


def make_cluster(job: Mapping[str, Any]) -> None:
    from brokers.controlplane import models  # noqa: PLC0415

    now_ms = int(time.time() * 1000)
    cluster = models.Cluster.objects.create(
        cluster_id=job["cluster_id"],
        name="at-its-limits",
        version=CHANGES,
        change_id=bytes(16),
        partition_count=job["topics"] * job["partitions"],
        created_at_ms=now_ms,
    )
    models.Broker.objects.bulk_create(
        models.Broker(
            cluster=cluster,
            broker_id=number + 1,
            epoch=number,
            incarnation=bytes(16),
            log_dir_id=bytes(16),
            host=job["host"],
            port=job["port"],
            inspection_port=job["port"],
            is_fenced=False,
            agent_id="agent",
            registered_at_ms=now_ms,
        )
        for number in range(BROKERS)
    )
    make_topics(cluster, job, now_ms)
    models.Change.objects.bulk_create(
        models.Change(
            cluster=cluster,
            version=number,
            change_id=number.to_bytes(16),
            encoded=b"",
            summary=f"topic {topic_name(number % job['topics'])} was created",
            actor="User:alice",
            made_at_ms=now_ms - 1000 * number,
            kind="create topic",
        )
        for number in range(1, CHANGES + 1)
    )


def make_topics(cluster: "Cluster", job: Mapping[str, Any], now_ms: int) -> None:
    from brokers.controlplane import models  # noqa: PLC0415

    topics = models.Topic.objects.bulk_create(
        (
            models.Topic(
                cluster=cluster,
                topic_id=number.to_bytes(16),
                name=topic_name(number),
                collision_key=topic_name(number),
                version=1,
                created_at_ms=now_ms,
            )
            for number in range(job["topics"])
        ),
        batch_size=BATCH,
    )
    models.Partition.objects.bulk_create(
        (
            models.Partition(
                topic=topic, index=index, replicas=[leader], isr=[leader], leader=leader
            )
            for number, topic in enumerate(topics)
            for index in range(job["partitions"])
            for leader in [leader_of(number, index) + 1]
        ),
        batch_size=BATCH,
    )


def make_people(count: int) -> Mapping[str, Any]:
    """Make admins; return the cookie that each of their browsers sends."""
    from django.conf import settings  # noqa: PLC0415
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from gateway.access import models  # noqa: PLC0415
    from gateway.access.operations import Role  # noqa: PLC0415

    cookies = []
    for number in range(count):
        user = User.objects.create_user(f"person-{number}")
        models.Account.objects.create(user=user, must_change_password=False)
        models.Grant.objects.create(user=user, role=Role.ADMIN.value)
        browser = Client()
        browser.force_login(user)
        cookies.append(browser.cookies[settings.SESSION_COOKIE_NAME].value)
    return {"name": settings.SESSION_COOKIE_NAME, "cookies": cookies}


if __name__ == "__main__":
    main()
