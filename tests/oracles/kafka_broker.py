"""Apache Kafka itself, from the jars that Maven brought: its tools, and a broker of one node.

Every program is a Java process of its own, bounded in memory and time. A broker keeps all that it
writes in the folder it is given and listens on two free ports of the loopback.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench.ports import claim_port
from tests.suite.maven import KafkaJars

JAVA = (
    "java",
    *("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    # Keys and values are printed as text, whatever the locale of the machine.
    *("-Dfile.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8", "-Dstdout.encoding=UTF-8"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # How a log was loaded is what a test may want to know.
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.storage.internals.log=info",
    "-Dorg.slf4j.simpleLogger.log.kafka.log=info",
)
TOOL_SECONDS = 60
START_SECONDS = 60
STOP_SECONDS = 30
NODE_ID = 1
CLUSTER_ID = "c2Ftc2EtdGVzdC1zYW1zYQ"

# One node, one replica of everything, and no waiting for more members that never come.
PROPERTIES = """
process.roles=broker,controller
node.id={node_id}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
log.dirs={log_dir}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.dedupe.buffer.size=2097152
log.cleaner.backoff.ms=100
"""


def run_tool(main_class: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run one of Kafka's programs to its end."""
    return subprocess.run(
        java(main_class, arguments),
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=TOOL_SECONDS,
        check=False,
    )


def java(main_class: str, arguments: Sequence[str]) -> list[str]:
    # Should the tests be killed, what they started goes with them, where Linux can see to it.
    watched = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [*watched, *JAVA, "-cp", f"{KafkaJars().folder}/*", main_class, *arguments]


def environment() -> dict[str, str]:
    """Return ours, without what would make Java print lines that no tool wrote."""
    return {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}


class KafkaBroker:
    """A broker that can be started and stopped over the same folder."""

    def __init__(self, folder: Path) -> None:
        self.log_dir = folder / "data"
        self.output = folder / "broker.txt"
        self._config = folder / "server.properties"
        port, controller_port = claim_port(), claim_port()
        self.bootstrap = f"127.0.0.1:{port}"
        text = PROPERTIES.format(
            node_id=NODE_ID, port=port, controller_port=controller_port, log_dir=self.log_dir
        )
        self._config.write_text(text, encoding="utf-8")
        arguments = ["format", "--standalone", "-t", CLUSTER_ID, "-c", str(self._config)]
        done = run_tool("kafka.tools.StorageTool", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def running(self) -> Iterator[AdminClient]:
        """Start the broker and stop it cleanly, or kill it where the caller failed."""
        with (
            self.output.open("a", encoding="utf-8") as output,
            subprocess.Popen(
                java("kafka.Kafka", [str(self._config)]),
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            try:
                # The client itself tries again until the port is open, and need not say so.
                admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
                admin.list_topics(timeout=START_SECONDS)
                yield admin
                process.terminate()
                process.wait(STOP_SECONDS)
            except BaseException:
                # Also an interrupt: the broker must not outlive its test, and its words are wanted.
                process.kill()
                sys.stderr.write(self.output.read_text(encoding="utf-8")[-5000:])
                raise
        assert (self.log_dir / ".kafka_cleanshutdown").exists(), self.output.read_text("utf-8")

    def complaints(self) -> list[str]:
        """Return what the broker warned of, in all its runs."""
        lines = self.output.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if " WARN " in line or " ERROR " in line]
