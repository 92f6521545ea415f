"""Provides the only Spark session of a process, created on first use.

A process that forks must create its session afterwards: a JVM does not survive a fork. SAMSA_SPARK
selects the Spark (see `targets`).
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
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
# The modules of pyspark and of its bridge to Java, whose errors may prevent a start.
OF_START: Final = ("pyspark", "py4j")


class Engine(Protocol):
    """The engine of a session."""

    spark: "SparkSession"

    def is_alive(self) -> bool: ...

    # Asks no other process, since any thread may call it at any time.
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
    # A forked child inherits a session that it cannot use.
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
    """Return the session of this process; create it if there is none, or if its JVM has died.

    `settings` are Spark's and override ours; they apply when the session is created.
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
                with ExitStack() as failing:
                    # Not in use yet, so close it after any error.
                    failing.callback(engine.close)
                    require_streams(engine.spark.version)
                    HELD.chronicle.running(engine.facts())
                    failing.pop_all()
                HELD.engine, HELD.target = engine, target
        return HELD.engine.spark


def has_session() -> bool:
    """Return whether a session exists, working or not."""
    return HELD.engine is not None and HELD.process == os.getpid()


def is_alive() -> bool:
    """Return whether this process has a working session."""
    with HELD.lock:
        engine = HELD.engine if HELD.process == os.getpid() else None
        return engine is not None and engine.is_alive()


def exit_code(wait_s: float = 0.0) -> int | None:
    """Return the exit code of the session's Java process; wait up to `wait_s` for its end.

    Negative for the signal that killed it; None if unknown.
    """
    with HELD.lock:
        engine = HELD.engine if HELD.process == os.getpid() else None
        return None if engine is None else engine.exit_code(wait_s)


def cancel_jobs() -> None:
    """Cancel the jobs of the session; callers that wait for them get an error."""
    with HELD.lock:
        engine = HELD.engine if HELD.process == os.getpid() else None
    if engine is not None:
        engine.cancel()


def close_session() -> None:
    """Close the session of this process, with its JVM if it has one."""
    with HELD.lock:
        if HELD.engine is not None and HELD.process == os.getpid():
            note_end(HELD.engine)
            HELD.engine.close()
            HELD.chronicle.closed()
        HELD.engine = None


def facts() -> Facts:
    """Return the facts about the session of this process at once, even while it is busy."""
    if HELD.process != os.getpid():
        return Facts()
    engine = HELD.engine
    if engine is not None:
        note_end(engine)
    return HELD.chronicle.facts


def note_end(engine: Engine) -> None:
    """Record the end of an engine that was not closed."""
    if HELD.chronicle.facts.stage is Stage.RUNNING and engine.has_ended():
        HELD.chronicle.failed(engine.how_it_ended())


def look() -> None:
    """Record the session's state; asks Spark, so call it from the thread that uses Spark."""
    engine = HELD.engine if HELD.process == os.getpid() else None
    if engine is None or engine.has_ended():
        return
    # It may end meanwhile, with various errors of its client; the next batch notices that.
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
    """Turn errors of a JVM's start into SparkNotStarted.

    Errors of a Connect server stay: their codes tell whether it is down (see `faults`).
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
    """Refuse a Spark whose Python sources do not support streams."""
    if is_too_old(version):
        raise SparkRefused(
            f"this is Spark {version}; streams of sources in Python need"
            f" {needed()} or newer: upgrade it, or use ./samsa's own ({INSTALL})"
        )
