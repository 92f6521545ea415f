"""What a broker benchmark runs against: a broker of ours started for it, a peer, and the floor.

Knows how to start, find and measure a process; nothing of what is asked of it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 120
ADMIN_SECONDS = 30
RETRY_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: str
    host: str
    port: int
    pid: int | None  # None: a peer on another machine, whose CPU is not seen
    # Whether topics may be given our own durability setting.
    is_ours: bool = False

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def cpu_seconds(self) -> float:
        """CPU of all threads so far, to the nanosecond; nothing for a peer elsewhere."""
        if self.pid is None:
            return float("nan")
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            # A JVM ends threads that it has no work for.
            with suppress(FileNotFoundError, ProcessLookupError):
                total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e9

    def rss_mib(self) -> float:
        if self.pid is None:
            return float("nan")
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def _admin(self) -> AdminClient:
        # A client that lives a moment longer than a broker it was made for need not say so.
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})

    def make_topic(
        self,
        name: str,
        partitions: int,
        *,
        durability: str | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Makes a topic that has leaders; the durability only where the broker is ours."""
        config = dict(config or {})
        if durability and self.is_ours:
            config["samsa.durability"] = durability
        admin = self._admin()
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin.create_topics([new], operation_timeout=ADMIN_SECONDS)[name].result(ADMIN_SECONDS)
        self._wait_until_led(name, partitions)
        return name

    def _wait_until_led(self, topic: str, partitions: int) -> None:
        """Return when every leader answers; Kafka says that a topic is made before it leads it."""
        deadline = time.monotonic() + ADMIN_SECONDS
        while True:
            try:
                self.records_in(topic, partitions)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_SECONDS)
            else:
                return

    def delete_topic(self, name: str) -> None:
        admin = self._admin()
        admin.delete_topics([name], operation_timeout=ADMIN_SECONDS)[name].result(ADMIN_SECONDS)

    def records_in(self, topic: str, partitions: int) -> int:
        """How many offsets a topic has given out."""
        admin = self._admin()
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic, index): latest for index in range(partitions)}
        found = admin.list_offsets(asked)
        return sum(future.result(ADMIN_SECONDS).offset for future in found.values())


@contextmanager
def own_broker(defaults: Mapping[str, str] | None = None) -> Iterator[tuple[Target, float]]:
    """One broker of ours in a home of its own, with the seconds that `up` took.

    `defaults` are configs that it is started with, by Kafka's names.
    """
    with tempfile.TemporaryDirectory(prefix="samsa-bench-") as home:
        launcher = str(ROOT / "samsa")
        where = ["--home", f"{home}/home"]
        ports = ["--port", "0", "--web-port", "0"]
        started = time.perf_counter()
        try:
            subprocess.run(
                [launcher, "up", "--detach", "--brokers", "1", *ports, *where],
                check=True,
                timeout=START_SECONDS,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "SAMSA_DEFAULTS": json.dumps(dict(defaults or {}))},
            )
            seconds = time.perf_counter() - started
            said = subprocess.run(
                [launcher, "status", "--json", *where], check=True, capture_output=True, text=True
            )
            broker = json.loads(said.stdout)["brokers"][0]
            target = Target(
                name="Samsa",
                host=broker["host"],
                port=broker["port"],
                pid=broker["pid"],
                is_ours=True,
            )
            yield target, seconds
        finally:
            subprocess.run([launcher, "down", *where], check=False, stdout=subprocess.DEVNULL)


@contextmanager
def floor(*, is_synced: bool = False) -> Iterator[Target]:
    """The sink that stands for what the kernel takes."""
    with tempfile.TemporaryDirectory(prefix="samsa-floor-") as folder:
        command = [sys.executable, "-m", "bench.floor", folder, *(["synced"] * is_synced)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline())
                yield Target(name="kernel alone", host="127.0.0.1", port=port, pid=process.pid)
            finally:
                process.terminate()


def other_broker(address: str) -> Target:
    """Another broker, by HOST:PORT; its process is measured where it runs on this machine."""
    host, _, port = address.rpartition(":")
    return Target(name=address, host=host, port=int(port), pid=_listener_pid(int(port)))


def _listener_pid(port: int) -> int | None:
    """The process that listens on a port of this machine, as far as we may see."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            columns = line.split()
            is_listening = columns[3] == "0A"
            if is_listening and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{columns[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = {str(fd.readlink()) for fd in (process / "fd").iterdir()}
        except OSError:
            continue
        if links & inodes:
            return int(process.name)
    return None
