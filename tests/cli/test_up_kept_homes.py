"""A home of an earlier release, kept in tests/data/homes: this release starts on it and goes on.

One start for all of it, since a start of a whole home takes seconds.
"""

import json
import lzma
import os
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.cli.lifecycle import samsa, told
from tests.cli.test_up import samsa_process, stopped_after
from tests.cluster import ROOT
from tests.extras import requires
from tests.interop.clients.confluent import ConfluentClient
from tests.oracles.confluent_client import QUIET, SECONDS
from tests.postgres import postgres_server

KEPT = ROOT / "tests" / "data" / "homes"
NAME = "ae868d9"
EXPECTED: Mapping[str, Any] = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))
# Of its PostgreSQL: one broker, and a topic that is there and one that was deleted.
QUESTION = """
import json
from brokers.controlplane import models
print(json.dumps({
    "topics": sorted(models.Topic.objects.values_list("name", flat=True)),
    "deleted": sorted(models.DeletedTopic.objects.values_list("name", flat=True)),
    "brokers": models.Broker.objects.count(),
    "next_id": models.ProducerIds.objects.get().next_id,
}))
"""


def unpacked(home: Path) -> None:
    with tarfile.open(KEPT / f"{NAME}.tar.xz") as archive:
        archive.extractall(home, filter="data")


def found(bootstrap: str) -> list[tuple[str, int, int, str, str]]:
    """Return all records as (topic, partition, offset, key, value)."""
    client = ConfluentClient()
    return sorted(
        (topic, row.partition, row.offset, row.key.decode(), row.value.decode())
        for topic in EXPECTED["configs"]
        for row in client.read(bootstrap, topic, (0, 1))
        if row.key is not None and row.value is not None
    )


def configs_of(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (described,) = admin.describe_configs([resource]).values()
    entries = described.result(SECONDS)
    return {key: entries[key].value for key in EXPECTED["configs"][topic]}


def committed(admin: AdminClient, group: str) -> set[int]:
    (listed,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    places = listed.result(SECONDS).topic_partitions
    return {place.offset for place in places}


def wrote(bootstrap: str) -> tuple[int, int]:
    """Return the partition and the offset of one more record of an idempotent producer."""
    places: list[tuple[int, int]] = []

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        places.append((partition, offset))

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    producer.produce("orders", b"new", partition=1, on_delivery=note)
    assert producer.flush(SECONDS) == 0
    return places[0]


def signed_in(console: str) -> str:
    """Return where a login with the old password leads."""
    cookies = CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    with opener.open(f"{console}/login", timeout=SECONDS) as page:
        form = page.read().decode()
    token = form.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    fields = {
        "csrfmiddlewaretoken": token,
        "username": EXPECTED["user"],
        "password": EXPECTED["password"],
    }
    body = urllib.parse.urlencode(fields).encode()
    with opener.open(f"{console}/login", body, timeout=SECONDS) as page:
        return urllib.parse.urlsplit(page.url).path


@pytest.mark.slow
def test_a_home_of_an_earlier_release_is_served_with_all_that_it_holds(tmp_path: Path) -> None:
    unpacked(tmp_path)
    with stopped_after(tmp_path):
        ports = ("--brokers", "2", "--port", "0", "--web-port", "0")
        started = samsa_process("up", "--detach", "--home", tmp_path, *ports)
        assert started.returncode == 0, started.stdout + started.stderr
        status = told(samsa("status", "--json", "--home", tmp_path))
        bootstrap = status["bootstrap"]
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})

        assert found(bootstrap) == [tuple(row) for row in EXPECTED["records"]]
        assert set(EXPECTED["configs"]) == {
            name for name in admin.list_topics(timeout=SECONDS).topics if not name.startswith("__")
        }
        for topic, configs in EXPECTED["configs"].items():
            assert configs_of(admin, topic) == configs
        for group, offset in EXPECTED["committed"].items():
            assert committed(admin, group) == {offset}
        end = 1 + max(row[2] for row in EXPECTED["records"] if row[:2] == ["orders", 1])
        assert wrote(bootstrap) == (1, end)
        assert signed_in(status["console"]) == "/"


@pytest.mark.slow
@requires("postgresql")
def test_a_postgresql_database_of_an_earlier_release_is_brought_up_to_date(
    tmp_path: Path,
) -> None:
    with postgres_server() as server:
        environment = {**os.environ, "DATABASE_URL": server.make_database("samsa")}
        server.load("samsa", lzma.decompress((KEPT / f"{NAME}.sql.xz").read_bytes()))

        def manage(*arguments: str) -> str:
            done = subprocess.run(
                [sys.executable, "-m", "cli", "manage", "--home", str(tmp_path), *arguments],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        manage("migrate")
        manage("migrate", "--check")
        answer = json.loads(manage("shell", "-c", QUESTION).splitlines()[-1])

    assert answer == {
        "topics": ["__consumer_offsets", *sorted(EXPECTED["configs"])],
        "deleted": ["gone"],
        "brokers": 1,
        "next_id": 1000,
    }
