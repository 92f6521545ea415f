"""Sparks of somebody else: a Connect server, and a standalone master with its workers.

Each is a process of Spark's own, on loopback and on ports that the system chooses, with a Python
that the test chooses. They end with the test, and what they started with them.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from spark_integration.jobs import class_archive
from spark_integration.jobs.doors import write_door
from spark_integration.jobs.java import find_java, prepare_java
from spark_integration.jobs.python import DOOR, zips_of_spark
from tests.cluster import ROOT
from tests.suite.spark import SHORT_LIVED_JAVA

HOST = "127.0.0.1"
# A JVM that serves within five seconds takes a minute where eight others start.
START_SECONDS = 120
STOP_SECONDS = 20
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
# As docker-compose.yml has them.
DAEMON_OPTIONS = (
    "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true "
    "-Dspark.master.rest.enabled=false"
)
DEPLOY = "org.apache.spark.deploy"


def run_program(module: str, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
    """Run a program of these tests to its end, however that comes."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": SHORT_LIVED_JAVA},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def spark_home() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment that has Spark, as a link to what is installed; no Samsa."""
    venv.create(folder, with_pip=False, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "spark.pth").write_text(f"{spark_home().parent}\n", encoding="utf-8")
    return folder / "bin" / "python"


def without_zips(folder: Path, python: Path) -> Path:
    """Return a wrapper of a Python that imports Spark's modules as installed.

    Out of Spark's zip, each of a dozen processes of a job compiles them again.
    """
    wrapper = folder / "python"
    folder.mkdir(parents=True, exist_ok=True)
    zips = shlex.quote(str(zips_of_spark()))
    write_door(wrapper, DOOR.format(zips=zips, python=shlex.quote(str(python))))
    return wrapper


def spark_environment(folder: Path, python: Path) -> dict[str, str]:
    """Return what programs of Spark find around them, below a folder of theirs."""
    java = prepare_java(folder / "java", os.environ)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "JAVA_HOME": str(java.home),
        # Also for executors and for the programs that only put commands together.
        "JDK_JAVA_OPTIONS": SHORT_LIVED_JAVA,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": str(without_zips(folder, python)),
    }


def stored_classes() -> str:
    """Return the option by which Java maps Spark's classes, as a command line takes it."""
    return " ".join(class_archive.options(find_java(os.environ))).replace('"', "")


@contextmanager
def serving(
    folder: Path, command: Sequence[str | Path], environment: Mapping[str, str], ready: str
) -> Iterator[str]:
    """Run a program until it prints what `ready` matches; yield the group of the match."""
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A group of its own, with the executors that it starts.
        start_new_session=True,
    )
    assert process.stdout is not None
    deadline = threading.Timer(START_SECONDS, process.kill)
    # What comes later is read too, or the program would wait for its reader.
    rest = threading.Thread(target=exhaust, args=(process.stdout,))
    try:
        deadline.start()
        answer = told(process.stdout, ready)
        deadline.cancel()
        rest.start()
        yield answer
    finally:
        deadline.cancel()
        end(process)
        if rest.ident is not None:
            rest.join()
        process.stdout.close()


def told(output: IO[str], ready: str) -> str:
    lines = []
    for line in output:
        lines.append(line)
        if found := re.search(ready, line):
            return found[1]
    raise AssertionError("it ended before it served:\n" + "".join(lines[-40:]))


def exhaust(output: IO[str]) -> None:
    for _ in output:
        pass


def end(process: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def connect_server(folder: Path, python: Path, *, port: int = 0, token: str = "") -> Iterator[str]:
    """Run a Connect server with a Spark of its own; yield its address."""
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.defaultJavaOptions": stored_classes(),
    }
    command: list[str | Path] = [
        *(spark_home() / "bin" / "spark-submit", "--master", "local[2]"),
        *("--class", CONNECT_SERVER),
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    ready = r"Spark Connect server started at: \S+:(\d+)"
    environment = spark_environment(folder, python)
    if token:
        environment["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    with serving(folder, command, environment, ready) as bound:
        yield f"sc://localhost:{bound}"


def free_port() -> int:
    """Return a port that a program may take, and take again when it is started a second time."""
    with socket.create_server((HOST, 0)) as opened:
        return int(opened.getsockname()[1])


@contextmanager
def standalone_cluster(folder: Path, python: Path, *, workers: int, secret: str) -> Iterator[str]:
    """Run a master and workers of one core each, which know a secret; yield the address."""
    environment = {
        **spark_environment(folder, python),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{DAEMON_OPTIONS} {stored_classes()}",
        "_SPARK_AUTH_SECRET": secret,
    }
    program = spark_home() / "bin" / "spark-class"
    listening = ("--host", HOST, "--port", "0", "--webui-port", "0")
    with ExitStack() as stack:
        master: list[str | Path] = [program, f"{DEPLOY}.master.Master", *listening]
        ready = r"service 'sparkMaster' on port (\d+)"
        port = stack.enter_context(serving(folder / "master", master, environment, ready))
        address = f"spark://{HOST}:{port}"

        def work(number: int) -> str:
            place = folder / f"worker-{number}"
            command: list[str | Path] = [program, f"{DEPLOY}.worker.Worker", *listening]
            command += ["--cores", "1", "--memory", "512m", "--work-dir", place / "jobs", address]
            ready = r"Successfully registered with master (\S+)"
            return stack.enter_context(serving(place, command, environment, ready))

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(workers)))
        yield address
