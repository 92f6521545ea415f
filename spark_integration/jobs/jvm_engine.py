"""A session with its driver in a JVM of this process: all of Spark, or the head of a cluster.

The JVM reads a pipe of this process and ends when it closes, so it never outlives this process.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_integration.jobs import class_archive
from spark_integration.jobs.chronicle import EngineFacts, last_words
from spark_integration.jobs.errors import SparkNotStarted
from spark_integration.jobs.folders import SessionFolder
from spark_integration.jobs.java import prepare_java
from spark_integration.jobs.package import OWN_ZIP, own_zip
from spark_integration.jobs.python import prepare_python
from spark_integration.jobs.settings import (
    LOOPBACK,
    driver_settings,
    is_secret,
    logging_of,
    merged,
    session_settings,
    wants_ui,
)
from spark_integration.jobs.targets import Kind, Target

# A healthy JVM takes a second; after this time it is killed.
STOP_SECONDS: Final = 20
# The address on which Spark's pages listen; without it, on all addresses of the machine.
ADDRESS: Final = "SPARK_LOCAL_IP"
NO_START: Final = "Java has not started Spark; logs/spark.out of the home has all that it said\n"


class JvmEngine:
    """A running JVM with its only session."""

    def __init__(self, home: Path, target: Target, settings: Mapping[str, str]) -> None:
        self._folder = SessionFolder(home)
        self._jvm: subprocess.Popen[bytes] | None = None
        self._output = home / "logs" / "spark.out"
        with ExitStack() as failing:
            # A start that failed, or was interrupted, must leave neither JVM nor folder.
            failing.callback(self.close)
            self.spark = self._start(home, target, settings)
            failing.pop_all()

    def _start(self, home: Path, target: Target, settings: Mapping[str, str]) -> SparkSession:
        logs = home / "logs"
        logs.mkdir(exist_ok=True)
        log_settings = self._folder.path / "log4j2.properties"
        log_settings.write_text(logging_of(logs / "spark.log"), encoding="utf-8")
        self._java = prepare_java(home / "spark" / "java", os.environ)
        # Spark reads it from the environment only, also for the programs that its scripts start.
        os.environ["PYSPARK_PYTHON"] = prepare_python(
            home / "spark", os.environ, is_near=target.kind is Kind.LOCAL
        )
        has_ui = wants_ui(os.environ) and target.is_loopback
        cores = len(os.sched_getaffinity(0))
        wanted = merged(
            session_settings(),
            driver_settings(
                target,
                self._folder,
                log_settings,
                cores=cores,
                has_ui=has_ui,
                java_options=class_archive.options(self._java),
            ),
            settings,
        )
        # The output of the JVM and of Python workers; cleared at the start of each session.
        # Do not keep JAVA_HOME: the next session would take it for the user's, without our wrapper.
        given = {"JAVA_HOME": str(self._java.home), **({ADDRESS: LOOPBACK} if has_ui else {})}
        with self._output.open("wb") as output, variables(given):
            try:
                gateway = launch_gateway(
                    shown_settings(wanted), popen_kwargs={"stdout": output, "stderr": output}
                )
            except PySparkRuntimeError as error:
                raise SparkNotStarted(f"{NO_START}{last_words(self._output)}") from error
        self._jvm = gateway.proc
        # Includes the defaults: the user's spark-defaults.conf, and the settings of the start.
        conf = SparkConf(_jvm=gateway.jvm).setAll(list(wanted.items()))
        with interrupts_as_before():
            spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        if target.kind is Kind.STANDALONE:
            # Its executors start outside of the checkout.
            code = self._folder.path / OWN_ZIP
            code.write_bytes(own_zip())
            spark.sparkContext.addPyFile(str(code))
        return spark

    def is_alive(self) -> bool:
        return self._jvm is not None and self._jvm.poll() is None

    def exit_code(self, wait_s: float) -> int | None:
        if self._jvm is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            self._jvm.wait(wait_s)
        return self._jvm.returncode

    def has_ended(self) -> bool:
        return not self.is_alive()

    def cancel(self) -> None:
        self.spark.sparkContext.cancelAllJobs()

    def facts(self) -> EngineFacts:
        context = self.spark.sparkContext
        runtime: Any = context._jvm.java.lang.Runtime.getRuntime()  # noqa: SLF001
        url = urlsplit(context.uiWebUrl or "")
        return EngineFacts(
            version=self.spark.version,
            java_version=self._java.version,
            java_origin=self._java.origin,
            process=0 if self._jvm is None else self._jvm.pid,
            heap_bytes=int(runtime.maxMemory()),
            cores=self.cores(),
            # The address on which it listens, whatever name it gives the machine.
            ui_url=f"http://{LOOPBACK}:{url.port}" if url.port else "",
        )

    def cores(self) -> int | None:
        return int(self.spark.sparkContext.defaultParallelism)

    def how_it_ended(self) -> str:
        code = None if self._jvm is None else self._jvm.poll()
        how = f"with exit code {code}"
        if code is not None and code < 0:
            how = f"by signal {-code}"
            if code == -signal.SIGKILL:
                how += ": it was killed, as the system does where memory is short"
        return f"Spark's Java process has ended {how}\n{last_words(self._output)}"

    def close(self, *, seconds: float = STOP_SECONDS) -> None:
        """Stop Spark, end the JVM, or kill it after a time, and remove the files of both."""
        if self.is_alive() and SparkSession._instantiatedSession is not None:  # noqa: SLF001
            # It may die meanwhile, which raises various errors of its client.
            with suppress(Exception):
                SparkSession._instantiatedSession.stop()  # noqa: SLF001
        forget()
        if self._jvm is not None:
            end(self._jvm, seconds)
        self._folder.remove()


def shown_settings(settings: Mapping[str, str]) -> SparkConf:
    """Return the settings for the JVM's command line: without secrets, since others can read it."""
    shown = [(name, value) for name, value in settings.items() if not is_secret(name)]
    return SparkConf(loadDefaults=False).setAll(shown)


@contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for programs to start, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def interrupts_as_before() -> Iterator[None]:
    """Keep the process's own handler of Ctrl-C, which Spark would replace."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        with suppress(ValueError):  # not the main thread, where Spark left it alone, too
            signal.signal(signal.SIGINT, before)


def forget() -> None:
    """Make pyspark forget its JVM, so that another session can be made in this process."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 (here and below: it has no other way)
    if gateway is not None:
        with suppress(Exception):  # its JVM may be dead
            gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


def end(jvm: "subprocess.Popen[bytes]", seconds: float) -> None:
    """End a JVM by closing the pipe that it reads, or else kill it."""
    if jvm.stdin is not None:
        jvm.stdin.close()
    try:
        jvm.wait(seconds)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
