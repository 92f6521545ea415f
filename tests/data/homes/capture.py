"""Keeps a home of a release: `python -m tests.data.homes.capture CHECKOUT NAME`.

CHECKOUT is a checkout of that release with its `.venv`. Its `./samsa` makes a home with two brokers
and SQLite, and one whose metadata is in PostgreSQL; clients write what `expected.json` lists. What
is kept is the home after a clean end, without logs and sockets, and a dump of the PostgreSQL
database. The files are named after NAME.
"""

import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.oracles.confluent_client import QUIET, SECONDS, create_topic
from tests.postgres import postgres_server

FOLDER = Path(__file__).parent
# What a start makes again, or what tells of the machine where the home was made.
LEFT_OUT = ("logs", "run")
USER, PASSWORD = "alice", "kept since the first release"
TOPICS: Mapping[str, Mapping[str, str]] = {
    "orders": {"retention.ms": "-1", "compression.type": "producer"},
    "accounts": {"cleanup.policy": "compact", "segment.bytes": "1048576"},
    "gone": {},
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_CODEC = 20
# Long ago by the time of a test: nothing that is kept may expire.
WRITTEN_AT_MS = 1_790_000_000_000
COMMITTED = {"classic": 30, "consumer": 40}


def main() -> None:
    checkout, name = Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory(prefix="samsa-kept-") as made:
        home = Path(made) / "home"
        with running(checkout, home, "--brokers", "2") as bootstrap:
            expected = fill(bootstrap)
            add_user(checkout, home)
        (FOLDER / f"{name}.tar.xz").write_bytes(packed(home))
        with postgres_server() as server:
            url = server.make_database("samsa")
            other = Path(made) / "other"
            with running(checkout, other, "--brokers", "1", DATABASE_URL=url) as bootstrap:
                fill(bootstrap)
            (FOLDER / f"{name}.sql.xz").write_bytes(lzma.compress(server.dump("samsa")))
    text = json.dumps(expected, indent=1, sort_keys=True)
    (FOLDER / "expected.json").write_text(text + "\n", encoding="utf-8")


@contextmanager
def running(checkout: Path, home: Path, *options: str, **environment: str) -> Iterator[str]:
    """Run a home of the release and return its bootstrap servers."""

    def samsa(*arguments: str) -> str:
        done = subprocess.run(
            [checkout / "samsa", *arguments, "--home", home],
            cwd=checkout,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    samsa("up", "--detach", "--port", "0", "--web-port", "0", *options)
    try:
        yield json.loads(samsa("status", "--json"))["bootstrap"]
    finally:
        samsa("down")


def fill(bootstrap: str) -> dict[str, Any]:
    """Write everything that is kept; return what a reader must find."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for topic, configs in TOPICS.items():
        create_topic(admin, topic, 2, dict(configs))
    records = [*written(bootstrap, "orders"), *written(bootstrap, "accounts")]
    written(bootstrap, "gone")
    for group, offset in COMMITTED.items():
        commit(bootstrap, group, offset)
    for deleted in admin.delete_topics(["gone"]).values():
        deleted.result(SECONDS)
    return {
        "committed": COMMITTED,
        "configs": {topic: dict(TOPICS[topic]) for topic in ("orders", "accounts")},
        "password": PASSWORD,
        "records": sorted(records),
        "user": USER,
    }


def written(bootstrap: str, topic: str) -> list[tuple[str, int, int, str, str]]:
    """Write with an idempotent producer of each codec; return topic, place, key and value."""
    told: list[tuple[str, int, int, str, str]] = []

    def note(error: object, message: Message) -> None:
        assert error is None, error
        partition, offset = message.partition(), message.offset()
        key, value = message.key(), message.value()
        assert partition is not None
        assert offset is not None
        assert key is not None
        assert value is not None
        told.append((topic, partition, offset, key.decode(), value.decode()))

    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 50,
                **QUIET,
            }
        )
        for number in range(RECORDS_PER_CODEC):
            producer.produce(
                topic,
                key=f"key-{number % 7}",
                value=f"{codec} {number} of {topic}, {'samsa ' * 5}",
                partition=number % 2,
                timestamp=WRITTEN_AT_MS,
                on_delivery=note,
            )
        assert producer.flush(SECONDS) == 0
    return told


def commit(bootstrap: str, group: str, offset: int) -> None:
    """Join a group of the protocol that it is named after, and commit for both partitions."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        **QUIET,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    read = 0
    while read < offset:
        read += len(consumer.consume(offset - read, 1.0))
    places = [TopicPartition("orders", partition, offset) for partition in range(2)]
    for place in consumer.commit(offsets=places, asynchronous=False):
        assert place.error is None, place.error
    consumer.close()


def add_user(checkout: Path, home: Path) -> None:
    done = subprocess.run(
        [
            *(checkout / "samsa", "manage", "--home", home, "createsuperuser", "--noinput"),
            *("--username", USER, "--email", "alice@example.org"),
        ],
        cwd=checkout,
        env={**os.environ, "DJANGO_SUPERUSER_PASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def packed(home: Path) -> bytes:
    """Return a home as a compressed archive, without what a start makes again."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in sorted(home.rglob("*")):
            inside = path.relative_to(home)
            if inside.parts[0] not in LEFT_OUT and (path.is_dir() or path.is_file()):
                archive.add(path, str(inside), recursive=False)
    return lzma.compress(data.getvalue())


if __name__ == "__main__":
    main()
