"""Workers of sinks are killed, and the target goes away: what arrives, and how often.

S3 has each record once. A web server has each at least once, and those of a partition in their
order, but for what is sent again.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connectors.sdk import outgoing
from tests.connectors.plugins.s3.bucket import Bucket, a_bucket
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.fakes.web_server import WebServer
from tests.scale import count

pytestmark = [pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(900)]

KILLS: Final = count(2, 2, long=10)
PARTITIONS: Final = 2
# Written between two kills: files of S3 end after fewer, so that a kill meets one that is half
# read, or half written.
ROUND: Final = 400
TOPIC: Final = "killed"
CONFIG: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "tasks.max": "2",
    "topics": TOPIC,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The numbers of records: how many were written, and which arrived where."""

    written: int
    in_bucket: list[int]
    uploads: list[str]
    by_partition: list[list[int]]


def kill_again_and_again(home: ConnectorsHome, bucket: Bucket, server: WebServer) -> Outcome:
    make_sinks(home, bucket, server)
    written = 0
    for victim in ["lake", "hook"] * (KILLS // 2):
        files, requests = len(bucket.names()), len(server.requests)
        written = write(home, written)
        home.wait(
            lambda files=files, requests=requests: (  # type: ignore[misc]
                len(bucket.names()) > files and len(server.requests) > requests
            ),
            "both sinks to be at work",
        )
        home.wait(lambda victim=victim: has_worker(home, victim), "a worker")  # type: ignore[misc]
        home.kill_worker_of(victim)
        for _ in range(3):
            server.answer(503)
        # Somebody who is killed each time before anything is done is taken for a poisoned one.
        wait_for_all(home, bucket, server, written)
    return Outcome(
        written=written,
        in_bucket=in_bucket(bucket),
        uploads=bucket.uploads(),
        by_partition=arrived(server),
    )


def wait_for_all(home: ConnectorsHome, bucket: Bucket, server: WebServer, written: int) -> None:
    wanted = set(range(written))
    home.wait(lambda: set(in_bucket(bucket)) == wanted, "all records to be in files")
    home.wait(
        lambda: {number for path in arrived(server) for number in path} == wanted,
        "all records to arrive",
    )


def make_sinks(home: ConnectorsHome, bucket: Bucket, server: WebServer) -> None:
    admin = AdminClient({"bootstrap.servers": home.cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    files = bucket.config(flush_size="70", rotate_schedule_interval_ms="1000")
    home.create("lake", {**CONFIG, **files, "connector.class": "samsa.s3.sink"})
    home.create(
        "hook",
        {
            **CONFIG,
            "connector.class": "samsa.http.sink",
            "http.url": f"{server.url}/${{partition}}",
            "request.body.format": "json",
            "batch.max.size": "20",
        },
    )


def write(home: ConnectorsHome, begin: int) -> int:
    """Write numbered records in turn into each partition; return the next number."""
    producer = Producer({"bootstrap.servers": home.cluster.bootstrap})
    for number in range(begin, begin + ROUND):
        value = json.dumps({"n": number, "text": "x" * 100})
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return begin + ROUND


def has_worker(home: ConnectorsHome, name: str) -> bool:
    """Tell whether the first task of a connector is with a worker that is there."""
    from connectors.models import Worker  # noqa: PLC0415 - Django is set up by now

    return Worker.objects.filter(name=home.tasks(name)[0].worker).exists()


def in_bucket(bucket: Bucket) -> list[int]:
    texts = [bucket.read(name) for name in bucket.names()]
    return [json.loads(line)["n"] for text in texts for line in text.splitlines()]


def arrived(server: WebServer) -> list[list[int]]:
    """Return the numbers that the path of each partition was sent, in their order."""
    asked = list(server.requests)
    return [
        [
            json.loads(line)["n"]
            for one in asked
            if one.target == f"/{partition}"
            for line in one.body.splitlines()
        ]
        for partition in range(PARTITIONS)
    ]


def test_s3_has_each_record_once_and_a_web_server_all_in_order(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    environment = {outgoing.SETTING: "127.0.0.1"}
    with (
        connectors_home(tmp_path / "home", workers=2, environment=environment) as home,
        a_bucket(f"killed-{uuid4()}") as bucket,
        WebServer() as server,
    ):
        outcome = kill_again_and_again(home, bucket, server)

    again = sum(len(path) - len(set(path)) for path in outcome.by_partition)
    report(
        f"{KILLS} kills: {outcome.written} records, {len(outcome.in_bucket)} in the bucket, "
        f"{again} sent again to the web server"
    )
    assert sorted(outcome.in_bucket) == list(range(outcome.written))
    assert outcome.uploads == []
    for path in outcome.by_partition:
        # A step back is what is sent again; a step forward leaves nothing out.
        assert all(after <= before + PARTITIONS for before, after in pairwise(path))
