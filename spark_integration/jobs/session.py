"""The one Spark session of a process, made when it is first asked for.

A process that forks makes its session afterwards: a JVM does not survive a fork. Which Spark it is
says SAMSA_SPARK (see `targets`), and nothing else in the house asks.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from spark_integration.datasource.releases import is_too_old, needed
from spark_integration.jobs.chronicle import (
    Chronicle,
    EngineFacts,
    Facts,
    Stage,
    first_lines,
    streams_of,
)
from spark_integration.jobs.errors import SparkMissing, SparkNotStarted, SparkRefused
from spark_integration.jobs.settings import memory_settings, merged
from spark_integration.jobs.targets import (
    TOKEN_VARIABLE,
    VARIABLE,
    Kind,
    Target,
    parse_target,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL: Final = "./samsa extras install spark"
# The modules of pyspark and of its bridge to Java, whose errors say what hinders a start.
OF_START: Final = ("pyspark", "py4j")


class Engine(Protocol):
    """What stands behind a session."""

    spark: "SparkSession"

    def is_alive(self) -> bool: ...

    # Without a question to another process: any thread asks, at any time.
    def has_ended(self) -> bool: ...

    def exit_code(self, wait_s: float) -> int | None: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...

    def facts(self) -> EngineFacts: ...

    def cores(self) -> int | None: ...

    def how_it_ended(self) -> str: ...


@dataclass(slots=True)
class Held:
    """The session of this process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    # A child of a fork has inherited one that it cannot use.
    process: int = 0
    target: Target | None = None
    engine: Engine | None = None
    chronicle: Chronicle = field(default_factory=Chronicle)


HELD: Final = Held()


def session(
    home: Path,
    *,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> "SparkSession":
    """Return the session of this process; make it where there is none, or where its JVM died.

    Settings are Spark's own, over ours; they count when the session is made.
    """
    target = wanted_target(environment)
    with HELD.lock:
        if HELD.process != os.getpid():
            HELD.process, HELD.engine, HELD.chronicle = os.getpid(), None, Chronicle()
        if HELD.engine is not None and (HELD.target != target or not HELD.engine.is_alive()):
            note_end(HELD.engine)
            HELD.engine.close()
            HELD.engine = None
        if HELD.engine is None:
            with HELD.chronicle.starting(target), start_errors(target):
                memory = {} if target.kind is Kind.CONNECT else memory_settings(environment)
                engine = make_engine(home, target, merged(memory, settings or {}))
                try:
                    require_streams(engine.spark.version)
                    HELD.chronicle.running(engine.facts())
                except BaseException:
                    # It is used by nobody, whatever was wrong with it.
                    engine.close()
                    raise
                HELD.engine, HELD.target = engine, target
        return HELD.engine.spark


def has_session() -> bool:
    """Tell whether a session was made and not given up, whether it works or not."""
    return HELD.engine is not None and HELD.process == os.getpid()


def is_alive() -> bool:
    """Tell whether this process has a session that works."""
    with HELD.lock:
        engine = HELD.engine if HELD.process == os.getpid() else None
        return engine is not None and engine.is_alive()


def exit_code(wait_s: float = 0.0) -> int | None:
    """Return with what the Java process behind the session has ended, or ends within a time.

    Of one that was killed it is the signal, below zero; None where it is unknown.
    """
    with HELD.lock:
        engine = HELD.engine if HELD.process == os.getpid() else None
        return None if engine is None else engine.exit_code(wait_s)


def cancel_jobs() -> None:
    """End what the session computes; the callers that wait for it get an error."""
    with HELD.lock:
        engine = HELD.engine if HELD.process == os.getpid() else None
    if engine is not None:
        engine.cancel()


def close_session() -> None:
    """End the session of this process, with its JVM where it has one."""
    with HELD.lock:
        if HELD.engine is not None and HELD.process == os.getpid():
            note_end(HELD.engine)
            HELD.engine.close()
            HELD.chronicle.closed()
        HELD.engine = None


def facts() -> Facts:
    """Return what is known of the session of this process, at once, whatever it does."""
    if HELD.process != os.getpid():
        return Facts()
    engine = HELD.engine
    if engine is not None:
        note_end(engine)
    return HELD.chronicle.facts


def note_end(engine: Engine) -> None:
    """Note the end of an engine that was not closed."""
    if HELD.chronicle.facts.stage is Stage.RUNNING and engine.has_ended():
        HELD.chronicle.failed(engine.how_it_ended())


def look() -> None:
    """Note what the session does now; asks Spark, so it belongs to the thread that works."""
    engine = HELD.engine if HELD.process == os.getpid() else None
    if engine is None or engine.has_ended():
        return
    # It may end meanwhile, in any of the ways of its client; the next batch will meet that.
    with suppress(Exception):
        HELD.chronicle.seen(cores=engine.cores(), streams=streams_of(engine.spark))


def wanted_target(environment: Mapping[str, str]) -> Target:
    return parse_target(environment.get(VARIABLE, ""), token=environment.get(TOKEN_VARIABLE, ""))


def make_engine(home: Path, target: Target, settings: Mapping[str, str]) -> Engine:
    # Both import pyspark, which takes a second and is an extra.
    try:
        if target.kind is Kind.CONNECT:
            from spark_integration.jobs.connect_engine import ConnectEngine  # noqa: PLC0415

            return ConnectEngine(target, settings)
        from spark_integration.jobs.jvm_engine import JvmEngine  # noqa: PLC0415

        return JvmEngine(home, target, settings)
    except ModuleNotFoundError as error:
        raise SparkMissing(f"{error.name} is not installed: {INSTALL}") from error


@contextmanager
def start_errors(target: Target) -> Iterator[None]:
    """Turn what hinders a JVM's start into SparkNotStarted.

    Errors of a Connect server stay: their codes tell whether it is away (see `faults`).
    """
    try:
        yield
    # Java, the bridge to it and the system have classes of their own.
    except Exception as error:
        is_of_start = isinstance(error, OSError) or type(error).__module__.startswith(OF_START)
        if target.kind is Kind.CONNECT or not is_of_start:
            raise
        said = first_lines(f"{type(error).__name__}: {error}", target.token)
        # The error itself may hold the token.
        raise SparkNotStarted(f"Spark could not be started: {said}") from None


def require_streams(version: str) -> None:
    """Refuse a Spark whose Python sources cannot read streams as ours does."""
    if is_too_old(version):
        raise SparkRefused(
            f"this is Spark {version}; streams of sources in Python need"
            f" {needed()} or newer: upgrade it, or use ./samsa's own ({INSTALL})"
        )
