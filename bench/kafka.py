"""Starts Apache Kafka itself, to measure it beside a broker of Samsa.

One node of the version that Maven brings, with the heap and the collector of Kafka's own start
script, and its default settings but for what one node needs. It counts as started when it knows
itself as a broker and gives out producer ids; a JVM compiles what it runs often, so the first load
is not measured.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.blaster import new_producer_id
from bench.broker_targets import Target
from bench.measure import NoPeer
from bench.ports import claim_port
from cli.installer import InstallError
from tests.suite.maven import KAFKA_VERSION, KafkaJars

# A JVM on a busy machine; a start takes 3 to 6 s.
START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 30.0
CLUSTER_ID: Final = "c2Ftc2EtYmVuY2gtc2Ftc2"
# What bin/kafka-server-start.sh and kafka-run-class.sh of Kafka 4 give the broker.
JAVA: Final = (
    "java",
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
log.dirs={log_dir}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@contextmanager
def real_kafka() -> Iterator[tuple[Target, float]]:
    """Run a broker of Kafka; with the seconds from its start until it serves."""
    jars = jars_of_kafka()
    with tempfile.TemporaryDirectory(prefix="samsa-bench-kafka-") as name:
        folder = Path(name)
        port, controller_port = claim_port(), claim_port()
        config = folder / "server.properties"
        config.write_text(
            PROPERTIES.format(port=port, controller_port=controller_port, log_dir=folder / "data"),
            encoding="utf-8",
        )
        _format(jars, config)
        started = time.perf_counter()
        with (
            (folder / "output.txt").open("w", encoding="utf-8") as output,
            subprocess.Popen(
                _java(jars, "kafka.Kafka", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            try:
                target = Target(
                    name=f"Kafka {KAFKA_VERSION}", host="127.0.0.1", port=port, pid=process.pid
                )
                _wait_until_serving(target, process, folder / "output.txt")
                yield target, time.perf_counter() - started
            finally:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


def jars_of_kafka() -> Path:
    """Return the folder of Kafka's jars; NoPeer where they, or Java, cannot be had."""
    if shutil.which("java") is None:
        raise NoPeer(f"no Kafka {KAFKA_VERSION} beside: java is not installed")
    jars = KafkaJars()
    try:
        jars.ensure()
    except InstallError as error:
        raise NoPeer(f"no Kafka {KAFKA_VERSION} beside: {error}") from error
    return jars.folder


def _format(jars: Path, config: Path) -> None:
    done = subprocess.run(
        _java(
            jars,
            "kafka.tools.StorageTool",
            *("format", "--standalone"),
            "-t",
            CLUSTER_ID,
            *("-c", str(config)),
        ),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise NoPeer(f"Kafka's log dir could not be made: {done.stdout}{done.stderr}"[:1000])


def _wait_until_serving(target: Target, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.perf_counter() + START_SECONDS
    while True:
        try:
            new_producer_id(target.host, target.port)
        except OSError as error:
            if process.poll() is not None or time.perf_counter() > deadline:
                said = output.read_text(encoding="utf-8")[-1000:]
                raise NoPeer(f"Kafka did not start: {error}\n{said}") from error
            time.sleep(0.05)
        else:
            return


def _java(jars: Path, main_class: str, *arguments: str) -> list[str]:
    # If the benchmark is killed, Linux kills Kafka too, provided that setpriv is installed.
    watched = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [*watched, *JAVA, "-cp", f"{jars}{os.sep}*", main_class, *arguments]
