"""Every client reads a topic that was cleaned to its end: gaps, batches without records, dead ends.

Three partitions, told apart by what cleaning leaves of them: some records between many gaps;
nothing but the last few; and nothing at all, since every key was deleted. Who reads by positions
must come to the end of all three; kafkajs, which goes on behind records only, to a later record.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from brokers.protocol.records.batch import batches
from brokers.protocol.records.compression import Compression
from tests.cluster import Cluster, running_cluster
from tests.extras import requires
from tests.interop.clients.client import Reader
from tests.interop.clients.confluent import ConfluentClient
from tests.interop.clients.kafkajs_client import KafkaJsClient
from tests.interop.clients.records import PARTITIONS, Row, Sent, difference
from tests.interop.clients.table import READERS
from tests.oracles.confluent_client import QUIET, create_topic

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC = "compacted"
DEFAULTS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
}
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "12000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1",
    # So that nothing stays as it was because it was written last.
    "max.compaction.lag.ms": "1",
}
SPARSE, DEAD, DELETED = PARTITIONS
KEYS = 40
ROUNDS = 12
WRITTEN_TOGETHER = 120
CLEAN_SECONDS = 90
END = b"end"
# Producers of old records are forgotten, and their last batches go.
WRITTEN_MS = int(time.time() * 1000) - 60_000


@dataclass
class Cleaned:
    """A cluster with the topic as cleaning has left it, and what a reader must find."""

    cluster: Cluster
    rows: list[Row]


def sent(partition: int, number: int, key: bytes, value: bytes | None) -> Sent:
    return Sent(
        partition=partition,
        timestamp=WRITTEN_MS + number,
        key=key,
        value=value,
        headers=(),
    )


def story() -> list[Sent]:
    """Every key written again and again; of each partition other ones are left."""
    rows = []
    for number in range(KEYS * ROUNDS):
        value = b"%d" % number + b"v" * 200
        # The first half of the keys is written in the first round only.
        sparse = number % KEYS if number < KEYS else KEYS // 2 + number % (KEYS // 2)
        rows.append(sent(SPARSE, number, b"k%d" % sparse, value))
        rows.append(sent(DEAD, number, b"k%d" % (number % 3), value))
        rows.append(sent(DELETED, number, b"k%d" % (number % KEYS), value))
    return rows + [sent(DELETED, KEYS * ROUNDS, b"k%d" % key, None) for key in range(KEYS)]


def left_of(rows: list[Sent]) -> list[Row]:
    """The last record of each key, at the offset that it was given, without what was deleted."""
    ends = dict.fromkeys(PARTITIONS, 0)
    last: dict[tuple[int, bytes | None], Row] = {}
    for one in rows:
        offset = ends[one.partition]
        ends[one.partition] += 1
        last[one.partition, one.key] = Row(
            one.partition, offset, one.timestamp, one.key, one.value, one.headers
        )
    return sorted(row for row in last.values() if row.value is not None)


def emptied(cluster: Cluster, partition: int) -> int:
    """How many batches without records lie in a partition's files."""
    logs = cluster.home.data.rglob(f"{TOPIC}-{partition}/*.log")
    found = [batch for log in logs for batch in batches(memoryview(log.read_bytes()))]
    return sum(batch.record_count == 0 for batch in found)


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cleaned]:
    environment = {"SAMSA_DEFAULTS": json.dumps(DEFAULTS)}
    folder = tmp_path_factory.mktemp("compacted")
    with running_cluster(folder / "home", environment=environment) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        create_topic(admin, TOPIC, len(PARTITIONS), CONFIG)
        rows, client = story(), ConfluentClient()
        for number, start in enumerate(range(0, len(rows), WRITTEN_TOGETHER)):
            # Every other producer leaves a last batch, which stays for its sequence.
            wrote, codec = rows[start : start + WRITTEN_TOGETHER], list(Compression)[number % 5]
            client.write(cluster.bootstrap, TOPIC, wrote, codec, idempotent=number % 2 == 0)
        wanted = left_of(rows)

        def is_clean() -> bool:
            return sorted(client.read(cluster.bootstrap, TOPIC, PARTITIONS)) == wanted

        cluster.wait(is_clean, "the topic to be cleaned", seconds=CLEAN_SECONDS)
        # What is written from here on stays in the file that it was written to.
        stop = ConfigEntry(
            "max.compaction.lag.ms", None, incremental_operation=AlterConfigOpType.DELETE
        )
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[stop])
        for changed in admin.incremental_alter_configs([resource]).values():
            changed.result(CLEAN_SECONDS)
        yield Cleaned(cluster, wanted)


@pytest.mark.parametrize(
    "reader",
    [pytest.param(each, id=each.name, marks=requires(*each.needs)) for each in READERS],
)
def test_a_client_reads_what_cleaning_left_up_to_the_end(
    cleaned: Cleaned, reader: Reader, report: Callable[[str], None]
) -> None:
    found = reader.read(cleaned.cluster.bootstrap, TOPIC, PARTITIONS)

    assert sorted(found) == cleaned.rows, difference(cleaned.rows, found)
    # What the test is about is there.
    empty = {partition: emptied(cleaned.cluster, partition) for partition in PARTITIONS}
    assert min(empty.values()) > 0
    report(f"{len(found)} records, batches without any by partition: {empty}")


@requires("kafkajs")
def test_kafkajs_finds_the_next_record_behind_batches_without_any(cleaned: Cleaned) -> None:
    bootstrap = cleaned.cluster.bootstrap
    ends = [sent(each, KEYS * ROUNDS + 1, END, b"") for each in PARTITIONS]
    ConfluentClient().write(bootstrap, TOPIC, ends, Compression.NONE, idempotent=False)

    found = KafkaJsClient().read_until(bootstrap, TOPIC, end=END, count=len(PARTITIONS))

    before = [row for row in found if row.key != END]
    assert sorted(before) == cleaned.rows, difference(cleaned.rows, before)
