"""Prepares programs of Spark's wheel: a Connect server, a master and its workers.

Any client of one of them can run code as its user, so each needs a secret, even on loopback. The
secret is never on a command line, which all users of the machine can read. A server listens on
loopback only, since it does not support TLS: remote clients need a proxy with TLS.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from spark_integration.jobs import class_archive
from spark_integration.jobs.errors import SparkMissing, SparkRefused
from spark_integration.jobs.java import find_java, prepare_java
from spark_integration.jobs.python import prepare_python
from spark_integration.jobs.settings import LOOPBACK, merged, session_settings
from spark_integration.jobs.targets import TOKEN_VARIABLE, Kind, parse_target

SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER: Final = "org.apache.spark.deploy.master.Master"
WORKER: Final = "org.apache.spark.deploy.worker.Worker"
# Variables that pass secrets to Spark's programs.
CONNECT_SECRET: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 (its name)
CLUSTER_SECRET: Final = "_SPARK_AUTH_SECRET"  # noqa: S105 (its name)
# A master requires the secret, and its interfaces without one are off: the one for jobs over HTTP,
# and the button of its page that ends jobs. Files of jobs are removed after a week.
DAEMON_OPTIONS: Final = (
    "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true"
    " -Dspark.master.rest.enabled=false -Dspark.ui.killEnabled=false"
    " -Dspark.worker.cleanup.enabled=true"
)
INSTALL: Final = "pyspark is not installed: ./samsa extras install spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command that replaces this process, with its folder, and settings to write before."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    # The settings file that the command names; only its owner may read it.
    settings_file: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def connect_server(
    home: Path, environment: Mapping[str, str], *, port: int, master: str, memory: str
) -> Program:
    """Return a Connect server with its own Spark, or with the executors of a cluster."""
    token = _token(environment, "a Connect server")
    target = parse_target(master, token=token)
    if target.kind is Kind.CONNECT:
        raise SparkRefused(f"--master is {master!r}; give local[*], local[N] or spark://HOST:7077")
    folder = home / "spark" / "server"
    settings = {
        "spark.master": target.url,
        "spark.app.name": "samsa-connect",
        "spark.driver.memory": memory,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.sql.catalogImplementation": "in-memory",
        # Libraries and files of sessions, which would otherwise stay in /tmp forever.
        "spark.driver.extraJavaOptions": " ".join(
            [f"-Djava.io.tmpdir={folder}", *class_archive.options(find_java(environment))]
        ),
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
    }
    if target.kind is Kind.STANDALONE:
        settings["spark.authenticate.secret"] = token
    if target.is_loopback:
        settings |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    program = _spark_home() / "bin" / "spark-submit"
    file = folder / "settings.conf"
    return Program(
        command=(
            *(str(program), "--properties-file", str(file), "--load-spark-defaults"),
            *("--class", SERVER, "spark-internal"),
        ),
        environment={**_environment(home, environment), CONNECT_SECRET: token},
        folder=folder,
        settings_file=file,
        settings=merged(session_settings(), settings),
    )


def master(
    home: Path, environment: Mapping[str, str], *, host: str, port: int, page_host: str = LOOPBACK
) -> Program:
    listening = ("--host", host, "--port", str(port), "--webui-port", "0")
    return _daemon(home, environment, MASTER, listening, page_host=page_host)


def worker(
    home: Path,
    environment: Mapping[str, str],
    *,
    host: str,
    at: str,
    cores: int,
    memory: str,
    page_host: str = LOOPBACK,
) -> Program:
    """Return a worker of a master; its executors get the given cores and memory."""
    target = parse_target(at, token=_token(environment, "a worker"))
    if target.kind is not Kind.STANDALONE:
        raise SparkRefused(f"{at!r} is not a master: give spark://HOST:7077")
    files = home / "spark" / "worker"
    listening = ("--host", host, "--webui-port", "0", "--work-dir", str(files / "jobs"))
    size = ("--cores", str(cores), "--memory", memory)
    return _daemon(home, environment, WORKER, (*listening, *size, target.url), page_host=page_host)


def _daemon(
    home: Path, environment: Mapping[str, str], name: str, words: tuple[str, ...], *, page_host: str
) -> Program:
    kind = "a master" if name == MASTER else "a worker"
    token = _token(environment, kind)
    # Despite its name, this is the address of Spark's page, which has no authentication and shows
    # the output of jobs. The program itself listens at its `--host`.
    around = _environment(home, environment) | {"SPARK_LOCAL_IP": page_host}
    options = f"{DAEMON_OPTIONS} {environment.get('SPARK_DAEMON_JAVA_OPTS', '')}".rstrip()
    around |= {CLUSTER_SECRET: token, "SPARK_DAEMON_JAVA_OPTS": options}
    return Program(
        command=(str(_spark_home() / "bin" / "spark-class"), name, *words),
        environment=around,
        folder=home / "spark" / kind.split()[1],
    )


def _token(environment: Mapping[str, str], what: str) -> str:
    if token := environment.get(TOKEN_VARIABLE, ""):
        return token
    raise SparkRefused(
        f"{what} runs all code of clients that know its secret, and {TOKEN_VARIABLE} is not set: "
        "set it to one, here and where the server or the master is used"
    )


def _environment(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of Spark's program: ours without the token, with its own paths."""
    kept = {name: text for name, text in environment.items() if name != TOKEN_VARIABLE}
    return kept | {
        "JAVA_HOME": str(prepare_java(home / "spark" / "java", environment).home),
        "SPARK_HOME": str(_spark_home()),
        "PYSPARK_PYTHON": prepare_python(home / "spark", environment, is_near=True),
        "SPARK_LOCAL_DIRS": environment.get("SPARK_LOCAL_DIRS") or str(home / "spark" / "tmp"),
    }


def _spark_home() -> Path:
    try:
        return Path(str(distribution("pyspark").locate_file("pyspark")))
    except PackageNotFoundError:
        raise SparkMissing(INSTALL) from None


def prepare(program: Program) -> None:
    """Create the folder of a program, and the file with its settings."""
    program.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if program.settings_file is None:
        return
    lines = "".join(f"{name} {_escaped(text)}\n" for name, text in program.settings.items())
    # A process that could read an older file may have opened it.
    program.settings_file.unlink(missing_ok=True)
    number = os.open(program.settings_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
        file.write(lines)


def _escaped(text: str) -> str:
    """Escape a value for a Java properties file."""
    return "".join(
        f"\\u{ord(char):04x}" if char in "\\#!=: " or not " " <= char <= "~" else char
        for char in text
    )
