"""kill -9 of a broker while it cleans: the last value of every key is there, and the worker is not.

A whole cluster as users start it. The broker dies at a moment when new files of a cleaning lie
beside the old ones; the supervisor brings it back, and the client goes on writing.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from tests.cluster import Cluster, running_cluster
from tests.interop.clients.confluent import ConfluentClient
from tests.oracles.confluent_client import QUIET, create_topic
from tests.scale import count

pytestmark = [pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 20_261_121
ROUNDS = count(3, 3, long=30)
TOPIC = "compacted"
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
}
DEFAULTS = {"log.cleaner.backoff.ms": "100"}
# A batch must fit into a segment.
BATCH_BYTES = 10_000
KEYS = 30
BROKER = "broker-1"
AT_ONCE = 500
SECONDS = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    environment = {"SAMSA_DEFAULTS": json.dumps(DEFAULTS)}
    with running_cluster(tmp_path / "home", environment=environment) as started:
        yield started


class Writer:
    """Writes rising numbers to some keys, and knows the last one of each."""

    def __init__(self, bootstrap: str, rng: Random) -> None:
        self.last: dict[bytes, bytes] = {}
        self.written = 0
        self._errors: list[str] = []
        self._rng = rng
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "queue.buffering.max.messages": 1_000_000,
                "batch.size": BATCH_BYTES,
                **QUIET,
            }
        )

    def write(self) -> None:
        for _ in range(AT_ONCE):
            key = b"k%d" % self._rng.randrange(KEYS)
            value = b"%d " % self.written + b"v" * 100
            self._producer.produce(TOPIC, value, key, 0, on_delivery=self._note)
            self._producer.poll(0)
            self.last[key] = value
            self.written += 1

    def finish(self) -> None:
        assert self._producer.flush(SECONDS) == 0
        assert not self._errors

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._errors.append(str(error))


def workers_of(pid: int) -> list[str]:
    """The processes that clean for a broker, dead or alive."""
    wanted = f"brokers.storage.clean_worker\0{pid}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "cmdline").read_bytes()
        except OSError:
            continue  # It ended meanwhile.
        if said.endswith(wanted):
            found.append(process.name)
    return found


def new_files(cluster: Cluster) -> list[str]:
    """What a cleaning that is under way has in the folder of the partition."""
    (folder,) = cluster.home.data.rglob(f"{TOPIC}-0")
    return [name for name in os.listdir(folder) if name.endswith((".cleaned", ".swap"))]


def wait_for_files(cluster: Cluster, writer: Writer, marker: str) -> None:
    """Writes until a cleaning is under way."""

    def has_begun() -> bool:
        writer.write()
        return any(name.endswith(marker) for name in new_files(cluster))

    cluster.wait(has_begun, f"files under {marker}", seconds=SECONDS)


def wait_for_end_of_workers(cluster: Cluster, broker: int) -> None:
    cluster.wait(lambda: not workers_of(broker), "its worker to end", seconds=SECONDS)


def test_a_broker_killed_while_it_cleans_comes_back_with_every_key(
    cluster: Cluster, report: Callable[[str], None]
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    create_topic(admin, TOPIC, 1, CONFIG)
    writer = Writer(cluster.bootstrap, Random(SEED))
    for number in range(ROUNDS):
        # Now the worker is at work, now the swap.
        wait_for_files(cluster, writer, ".swap" if number % 3 == 2 else ".cleaned")
        left = new_files(cluster)
        killed = cluster.kill(BROKER)
        writer.write()
        away = cluster.wait_for_restart(BROKER, killed)
        wait_for_end_of_workers(cluster, killed)
        writer.finish()

        rows = ConfluentClient().read(cluster.bootstrap, TOPIC, [0])
        last = {row.key: row.value for row in sorted(rows)}
        assert last == writer.last
        offsets = [row.offset for row in sorted(rows)]
        assert len(set(offsets)) == len(offsets)
        report(
            f"round {number}, seed {SEED}: killed with {len(left)} new files, back after "
            f"{away:.1f} s; {writer.written} written, {len(rows)} read"
        )
    log = next(cluster.home.data.rglob(f"{TOPIC}-0"))
    assert not list(log.glob("*.damaged"))
