"""A home whose database is an old copy: a new idempotent producer is no duplicate of one before."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from tests.cluster import running_cluster
from tests.interop.clients.confluent import ConfluentClient
from tests.oracles.confluent_client import QUIET, create_topic

TOPIC = "orders"
WAIT_SECONDS = 20


def wrote(bootstrap: str, value: bytes) -> int:
    """Return the offset that a new idempotent producer was told."""
    told: list[tuple[KafkaError | None, int | None]] = []

    def note(error: KafkaError | None, message: Message) -> None:
        told.append((error, message.offset()))

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    producer.produce(TOPIC, value, callback=note)
    producer.flush(WAIT_SECONDS)
    ((error, offset),) = told
    assert error is None
    assert offset is not None
    return offset


@pytest.mark.campaign
@pytest.mark.slow
def test_records_acknowledged_after_a_database_was_restored_are_stored(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    with running_cluster(home) as cluster:
        create_topic(AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET}), TOPIC, 1, {})
    copy.mkdir()
    for file in home.glob("cluster.db*"):
        shutil.copy2(file, copy)
    with running_cluster(home) as cluster:
        first = wrote(cluster.bootstrap, b"first")

    for file in home.glob("cluster.db*"):
        file.unlink()
    for file in copy.iterdir():
        shutil.copy2(file, home)

    with running_cluster(home) as cluster:
        second = wrote(cluster.bootstrap, b"second")
        rows = ConfluentClient().read(cluster.bootstrap, TOPIC, (0,))

    assert (first, second) == (0, 1)
    assert [row.value for row in rows] == [b"first", b"second"]
