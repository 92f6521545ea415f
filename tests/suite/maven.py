"""Fetches Apache Kafka, and Spark's own Kafka source, with Maven, for tests that compare.

An extra of the tests, never a requirement: it is used only if Maven is installed and its registry
answers. Maven's own settings name the registry. Success and failure are stored in `.venv`, so that
the next run makes no request.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cli.environment import ROOT
from cli.installer import InstallError

# The version of the client classes in the oracle wheel.
KAFKA_VERSION = "4.3.0"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"
# 45 MB; the limit is for a registry that answers but sends nothing.
FETCH_SECONDS = 300
# After a failure, try the registry again the next day, not in the next run.
RETRY_AFTER_SECONDS = 24 * 3600
# Debian's Maven colours its output even without a terminal.
COLOUR = re.compile(r"\x1b\[[\d;]*m")

# The broker, its tools (without Connect, which doubles the files), and a logger that shows its
# log lines.
PROJECT = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>samsa</groupId>
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>{KAFKA_VERSION}</version>
      <exclusions>
        <exclusion>
          <groupId>org.apache.kafka</groupId>
          <artifactId>connect-runtime</artifactId>
        </exclusion>
      </exclusions>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

# The only jar that the oracle wheel lacks for a worker of Kafka Connect; it has all others in this
# version.
CONNECT_JARS = (("org.eclipse.jetty", "jetty-security", "12.0.34"),)
# Spark's `format("kafka")`, for Spark 4.2 or 4.3. The second jar is of an older release: not every
# mirror of the registry has it in this one, and the parts that the first calls have not changed.
# Spark's own jars include all other dependencies.
SPARK_KAFKA_VERSION = "4.2.0"
SPARK_KAFKA_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_KAFKA_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.0"),
)
# A project with only some jars, without their dependencies.
BARE_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>samsa</groupId>
  <artifactId>jars-for-tests</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
BARE_DEPENDENCY = """    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>
      <exclusions>
        <exclusion>
          <groupId>*</groupId>
          <artifactId>*</artifactId>
        </exclusion>
      </exclusions>
    </dependency>"""


class KafkaJars:
    """The jars of a Kafka broker in one folder, which appears only when it is complete."""

    def __init__(
        self,
        folder: Path = ROOT / ".venv" / f"kafka-{KAFKA_VERSION}",
        *,
        project: str = PROJECT,
        what: str = f"Kafka {KAFKA_VERSION} and its dependencies, 45 MB",
    ) -> None:
        self.folder = folder
        self._project = project
        self._what = what
        self._failure = folder.with_name(f"{folder.name}.failed")

    def is_here(self) -> bool:
        return self.folder.is_dir()

    def ensure(self) -> None:
        """Fetch the jars, unless they are there or fetching them failed a short while ago."""
        if self.is_here():
            return
        maven = shutil.which("mvn")
        if maven is None:
            raise InstallError("mvn is not installed")
        if self._failed_lately():
            reason = self._failure.read_text(encoding="utf-8")
            raise InstallError(f"{reason}; delete {self._failure} to try again today")
        self.folder.parent.mkdir(exist_ok=True)
        started = time.monotonic()
        sys.stderr.write(f"  mvn: fetching {self._what} …\n")
        try:
            self._fetch(maven)
        except InstallError as error:
            self._failure.write_text(str(error), encoding="utf-8")
            raise
        self._failure.unlink(missing_ok=True)
        sys.stderr.write(f"  mvn: done [{time.monotonic() - started:.0f} s]\n")

    def _failed_lately(self) -> bool:
        try:
            failed = self._failure.stat().st_mtime
        except FileNotFoundError:
            return False
        return time.time() - failed < RETRY_AFTER_SECONDS

    def _fetch(self, maven: str) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix="kafka-") as name:
            project, jars = Path(name, "pom.xml"), Path(name, "jars")
            project.write_text(self._project, encoding="utf-8")
            run_maven(
                [
                    *(maven, "--batch-mode", "--quiet", "--strict-checksums", f"--file={project}"),
                    *(PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={jars}"),
                ]
            )
            try:
                jars.rename(self.folder)
            except OSError as error:
                # Another run may have been faster.
                if not self.is_here():
                    raise InstallError(f"the jars could not be kept: {error}") from error


def bare_project(jars: Sequence[tuple[str, str, str]]) -> str:
    """Return a project with these jars as dependencies: group, name and version of each."""
    found = "\n".join(BARE_DEPENDENCY.format(*jar) for jar in jars)
    return BARE_PROJECT.format(dependencies=found)


def connect_jars() -> KafkaJars:
    """Return the jars of a worker of Kafka Connect, besides the oracle wheel."""
    return KafkaJars(
        ROOT / ".venv" / f"connect-{KAFKA_VERSION}",
        project=bare_project(CONNECT_JARS),
        what="a jar of Jetty, 0.1 MB",
    )


def spark_kafka_jars() -> KafkaJars:
    """Return the jars that our Spark lacks for its own `format("kafka")`."""
    return KafkaJars(
        ROOT / ".venv" / f"spark-kafka-{SPARK_KAFKA_VERSION}",
        project=bare_project(SPARK_KAFKA_JARS),
        what=f"Spark's own Kafka source {SPARK_KAFKA_VERSION}, 10 MB",
    )


def run_maven(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"mvn was not done within {FETCH_SECONDS} s") from error
    except OSError as error:
        raise InstallError(f"mvn could not be started: {error}") from error
    if done.returncode != 0:
        plain = COLOUR.sub("", done.stdout)
        words = [line.removeprefix("[ERROR]").strip() for line in plain.splitlines()]
        raise InstallError(f"mvn failed: {next(filter(None, words), 'no output')[:300]}")
