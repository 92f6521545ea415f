"""Provides the session that all connectors of a worker share, and classifies its errors.

The session is in a Java process of the worker's own, or on a Connect server; only this module
knows how they differ.
"""

import os
import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.spark import deadlines, exhaustion
from connectors.plugins.spark.batch_size import BatchTooLarge
from connectors.plugins.spark.server_errors import holds, of_server, without
from connectors.plugins.spark.sharing import require_shared
from connectors.plugins.spark.tries import MAX_TRIES, Failed, Tries
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.home_files import HOME
from spark_integration.jobs.errors import SparkError, SparkNotStarted
from spark_integration.jobs.session import (
    cancel_jobs,
    close_session,
    exit_code,
    has_session,
    is_alive,
    look,
    session,
    wanted_target,
)
from spark_integration.jobs.targets import VARIABLE, Kind, Target, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Errors of Spark for a query that cannot work, regardless of the session and the attempt.
HOPELESS: Final = ("AnalysisException", "ParseException")
# Spark raises them for our own source, too, if it could not ask the cluster.
OF_SOURCE: Final = "PYTHON_DATA_SOURCE_ERROR"
# Brokers that are down come back. A request that was sent twice finds the folder of an earlier
# attempt; the next attempt has another folder.
PASSING: Final = ("wire.errors.Unreachable", "PATH_ALREADY_EXISTS")
# The modules that define exceptions of Spark, and of the bridges to its Java process.
SPARKS: Final = ("pyspark", "py4j", "grpc")
# How long a Java process may take to end after the bridge to it has broken.
END_S: Final = 10.0
# A key of the values kept between slices: the session that was seen to share the table's folder.
SHARED: Final = "shared"
# The first lines of a Java trace name its cause.
MAX_CHARS: Final = 2000


# The session that knows the source already; Spark would log each registration.
REGISTERED: Final[ContextVar["SparkSession | None"]] = ContextVar("registered", default=None)


def spark() -> "SparkSession":
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 - an extra

    found = session(Path(os.environ.get(HOME) or ".samsa").absolute())
    if REGISTERED.get() is not found:
        found.dataSource.register(SamsaDataSource)
        REGISTERED.set(found)
    look()
    return found


def target() -> Target:
    return wanted_target(os.environ)


def require_own_process(what: str) -> None:
    """Refuse features that inspect Spark's Java process, if that is on another machine."""
    if target().kind is Kind.CONNECT:
        raise ConnectorError(
            f"{what} does not run on a Connect server, which {VARIABLE} names: a query is checked"
            " as Spark itself has parsed it, which only a Java process of the worker's own shows;"
            f" set {VARIABLE} to local, local[N] or spark://HOST:PORT"
        )


def require_folder(folder: Path, kept: MutableMapping[str, Any]) -> None:
    """Refuse a remote Spark that does not see a folder; check once per session."""
    found, at = spark(), target()
    seen = kept.get(SHARED)
    if at.kind is Kind.LOCAL or (seen is not None and seen() is found):
        return
    require_shared(found, folder, shown(at.url))
    # Must not keep a closed session alive.
    kept[SHARED] = weakref.ref(found)


def beside(parent: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    """Return a session in the same Java process, with views and settings of its own."""
    # Clone it: a new session would not know our data source.
    found = type(parent)(
        parent.sparkContext,
        parent._jsparkSession.cloneSession(),  # noqa: SLF001 - pyspark has no name for it
    )
    for name, value in settings.items():
        found.conf.set(name, value)
    return found


@contextmanager
def errors(tries: Tries, *, has_batch: bool = False) -> Iterator[None]:
    """Turn an error of Spark into one that says whether another attempt may help.

    A batch that ended Spark is tried again, smaller each time, down to one record.
    """
    try:
        yield
    except ConnectorError:
        raise
    except SparkError as error:
        said = shown(str(error))
        cause = error if said == str(error) else None
        # The machine may be short of memory for a while.
        if isinstance(error, SparkNotStarted) and not tries.are_used_up:
            tries.count()
            raise Failed(said) from cause
        raise ConnectorError(said) from cause
    # py4j, gRPC and Python workers have classes of their own.
    except Exception as error:
        at = target()
        # Before the session may be closed: an error of the bridge asks Java for its text.
        said = _said(error)
        has_token = holds(said, at.token)
        meant = _meaning(error, said, at, tries, has_batch=has_batch)
        if meant is error:
            raise
        if isinstance(meant, Failed):
            tries.count()
        # A trace would show the token in the cause as well.
        raise meant from (None if has_token else error)


def _said(error: Exception) -> str:
    try:
        return str(error)
    # The bridge asks Java for the text, and raises various errors if that has ended.
    except Exception:  # noqa: BLE001
        return exhaustion.NO_ANSWER


def _meaning(
    error: Exception, said: str, at: Target, tries: Tries, *, has_batch: bool
) -> Exception:
    """Return what to raise for an error: the error itself if it is not of Spark."""
    is_of_spark = type(error).__module__.startswith(SPARKS)
    words = without(f"{type(error).__name__}: {said}", at.token)
    if at.kind is Kind.CONNECT:
        found = of_server(
            error, at, tries=tries.failed, most_tries=MAX_TRIES, had_session=has_session()
        )
        if is_of_spark and found is not None:
            return found
    elif has_session() and (not is_alive() or exhaustion.is_lost(words)):
        # The bridge raises errors of many classes then.
        return _end_of_process(tries, has_batch=has_batch)
    if not is_of_spark:
        return error
    if has_batch and (too_large := exhaustion.of_words(words)) is not None:
        # It may go on without a thread that it needs, so the next attempt starts another one.
        close_session()
        return too_large
    said = words[:MAX_CHARS]
    is_hopeless = OF_SOURCE not in words and any(word in said for word in HOPELESS)
    is_passing = any(word in words for word in PASSING)
    if is_passing:
        return RetriableError("Spark failed", about_record=f": {said}")
    if is_hopeless or tries.are_used_up:
        return ConnectorError("Spark cannot do it", about_record=f": {said}")
    return Failed("Spark failed", about_record=f": {said}")


def _end_of_process(tries: Tries, *, has_batch: bool) -> ConnectorError:
    said = exhaustion.of_end(exit_code(END_S))
    close_session()
    if has_batch:
        return BatchTooLarge(said)
    if tries.are_used_up:
        return ConnectorError(f"{said}; {exhaustion.ADVICE}")
    return Failed(said)


@contextmanager
def batch(tries: Tries) -> Iterator[None]:
    """Classify errors of Spark for a batch, and cancel a batch that takes too long."""
    # A failure to make the session says nothing about the size of the batch.
    with errors(tries):
        spark()
    with deadlines.limited(cancel_jobs), errors(tries, has_batch=True):
        yield
    tries.succeed()
