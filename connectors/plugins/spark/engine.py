"""The session that all connectors of a worker share, and what its errors mean."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connectors.plugins.file.places import HOME
from connectors.plugins.spark import deadlines, exhaustion
from connectors.plugins.spark.batch_size import BatchTooLarge
from connectors.sdk.errors import ConnectorError, RetriableError
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.session import (
    cancel_jobs,
    close_session,
    exit_code,
    is_alive,
    session,
    wanted_target,
)
from spark_integration.jobs.targets import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Spark says of a query that cannot work, whoever runs it and when.
HOPELESS: Final = ("AnalysisException", "ParseException")
# It says so of our own source, too, where that could not ask the cluster.
OF_SOURCE: Final = "PYTHON_DATA_SOURCE_ERROR"
# Brokers that are away come back; what else failed before in a row has nothing to do with that.
PASSING: Final = "wire.errors.Unreachable"
# What else fails so often in a row is told as the end of the task.
MAX_TRIES: Final = 5
# Where exceptions of Spark, and of the bridge to its Java process, are defined.
SPARKS: Final = ("pyspark", "py4j")
# How long a Java process may take to end, once the bridge to it is gone.
END_S: Final = 10.0
# The first lines of a trace of Java say what it is about.
MAX_CHARS: Final = 2000


# The session that knows the source already; Spark's log would name each time that it learns it.
REGISTERED: Final[ContextVar["SparkSession | None"]] = ContextVar("registered", default=None)


def spark() -> "SparkSession":
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 - an extra

    if wanted_target(os.environ).kind is Kind.CONNECT:
        raise ConnectorError(
            "SAMSA_SPARK names a Connect server, and connectors run in a session of the worker's"
            " own: set it to local, local[N] or spark://HOST:PORT"
        )
    found = session(Path(os.environ.get(HOME) or ".samsa").absolute())
    if REGISTERED.get() is not found:
        found.dataSource.register(SamsaDataSource)
        REGISTERED.set(found)
    return found


def beside(parent: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    """Return a session in the same Java process, with views and settings of its own."""
    # It is a copy, since a new one would neither know our source nor be told of it.
    found = type(parent)(
        parent.sparkContext,
        parent._jsparkSession.cloneSession(),  # noqa: SLF001 - pyspark has no name for it
    )
    for name, value in settings.items():
        found.conf.set(name, value)
    return found


@contextmanager
def errors(retries: int, *, has_batch: bool = False) -> Iterator[None]:
    """Say of an error of Spark whether another try may help.

    A batch that Spark has ended with is tried again until it is one record.
    """
    try:
        yield
    except ConnectorError:
        raise
    except SparkError as error:
        raise ConnectorError(str(error)) from error
    # Whatever it is: py4j, gRPC and Python workers have classes of their own.
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        if not is_alive() or exhaustion.is_lost(words):
            said = exhaustion.of_end(exit_code(END_S))
            close_session()
            if has_batch:
                raise BatchTooLarge(said) from error
            if retries >= MAX_TRIES:
                raise ConnectorError(f"{said}; {exhaustion.ADVICE}") from error
            raise RetriableError(said) from error
        if not type(error).__module__.startswith(SPARKS):
            raise
        if has_batch and (too_large := exhaustion.of_words(words)) is not None:
            # It may go on without a thread that it needs: the next attempt has another one.
            close_session()
            raise too_large from error
        said = words[:MAX_CHARS]
        is_hopeless = OF_SOURCE not in words and any(word in said for word in HOPELESS)
        has_tried = retries >= MAX_TRIES and PASSING not in words
        if is_hopeless or has_tried:
            raise ConnectorError(f"Spark cannot do it: {said}") from error
        raise RetriableError(f"Spark failed: {said}") from error


@contextmanager
def batch(retries: int) -> Iterator[None]:
    """Say of an error of Spark what it means for a batch, and end one that takes too long."""
    # A session that cannot be made has nothing to do with the size of a batch.
    with errors(retries):
        spark()
    with deadlines.limited(cancel_jobs), errors(retries, has_batch=True):
        yield
