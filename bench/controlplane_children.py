"""One process that writes the control plane, for the suite of that name.

Says when it is ready, takes a job as JSON on its standard input, and says what it saw as JSON. Its
environment names the database, as every process of Django's is told.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

HOST: Final = "127.0.0.1"
TOPICS: Final = 8
PAUSE_SECONDS: Final = 0.05


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"
    # Imported late: Django reads its settings when it is first asked for one.
    import django  # noqa: PLC0415

    django.setup()
    say("ready")
    job = json.loads(sys.stdin.readline())
    say(json.dumps(ROLES[job["role"]](job)))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def prepare(_job: Mapping[str, Any]) -> dict[str, Any]:
    """Make the tables, a cluster with topics, and one broker that is let in."""
    from brokers.cluster.proposals import CreateTopic, Proposal  # noqa: PLC0415
    from brokers.cluster.store import Registration  # noqa: PLC0415
    from brokers.controlplane import services  # noqa: PLC0415
    from brokers.controlplane.agent.tables import ensure_tables  # noqa: PLC0415

    ensure_tables()
    cluster_id = services.ensure_cluster(name="bench", now_ms=_now_ms()).cluster_id
    registered = services.register_broker(
        cluster_id=cluster_id,
        registration=Registration(incarnation=secrets.token_bytes(16), host=HOST, port=9092),
        agent_id="bench",
        process="",
        now_ms=_now_ms(),
    )
    broker = {"broker_id": registered.broker_id, "broker_epoch": registered.broker_epoch}
    services.unfence_broker(cluster_id=cluster_id, now_ms=_now_ms(), **broker)
    topics = [CreateTopic(name=f"bench-{number}", partitions=1) for number in range(TOPICS)]
    services.propose(
        cluster_id=cluster_id,
        proposals=[
            Proposal(id=secrets.token_bytes(16), action=topic, actor="bench") for topic in topics
        ],
        now_ms=_now_ms(),
    )
    return {"cluster_id": cluster_id, **broker}


def write(job: Mapping[str, Any]) -> dict[str, Any]:
    """Write without a pause from one moment to another, one transaction after the other."""
    from brokers.cluster.image import ResourceType  # noqa: PLC0415
    from brokers.cluster.proposals import AlterConfigs, ConfigEdit, Proposal  # noqa: PLC0415
    from brokers.controlplane import services  # noqa: PLC0415

    written = 0
    slowest = 0.0
    while time.time() < job["end"]:
        edit = ConfigEdit(key="retention.ms", value=str(1_000_000 + written))
        action = AlterConfigs(
            resource_type=ResourceType.TOPIC, name=f"bench-{job['number']}", edits=(edit,)
        )
        asked = Proposal(id=secrets.token_bytes(16), action=action, actor="bench")
        began = time.perf_counter()
        services.propose(cluster_id=job["cluster_id"], proposals=[asked], now_ms=_now_ms())
        if time.time() >= job["begin"]:
            written += 1
            slowest = max(slowest, time.perf_counter() - began)
    return {"written": written, "slowest_ms": 1000 * slowest}


def fence(job: Mapping[str, Any]) -> dict[str, Any]:
    """Fence a broker and let it in, in turns, as an agent's liveness lane does."""
    from brokers.controlplane import database, services  # noqa: PLC0415
    from brokers.controlplane.lanes import LIVENESS_LOCK_S  # noqa: PLC0415

    database.use_own_connection(lock_timeout_s=LIVENESS_LOCK_S, is_urgent=True)
    seconds = []
    while time.time() < job["begin"]:
        time.sleep(PAUSE_SECONDS)
    for turn in range(2 * job["count"]):
        service = services.unfence_broker if turn % 2 else services.fence_broker
        began = time.perf_counter()
        is_done = service(
            cluster_id=job["cluster_id"],
            broker_id=job["broker_id"],
            broker_epoch=job["broker_epoch"],
            now_ms=_now_ms(),
        )
        assert is_done, "every turn changes the broker"
        if service is services.fence_broker:
            seconds.append(time.perf_counter() - began)
        time.sleep(PAUSE_SECONDS / 2)
    return {"ms": sorted(1000 * each for each in seconds)}


ROLES: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "prepare": prepare,
    "write": write,
    "fence": fence,
}


def _now_ms() -> int:
    return int(1000 * time.time())


if __name__ == "__main__":
    main()
