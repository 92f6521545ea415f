"""The session that all connectors of a worker share, and what its errors mean."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connectors.plugins.file.places import HOME
from connectors.sdk.errors import ConnectorError, RetriableError
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.session import is_alive, session, wanted_target
from spark_integration.jobs.targets import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Spark says of a query that cannot work, whoever runs it and when.
HOPELESS: Final = ("AnalysisException", "ParseException")
# What else fails so often in a row is told as the end of the task.
MAX_TRIES: Final = 5
# Where exceptions of Spark, and of the bridge to its Java process, are defined.
SPARKS: Final = ("pyspark", "py4j")
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
def errors(retries: int) -> Iterator[None]:
    """Say of an error of Spark whether another try may help."""
    try:
        yield
    except ConnectorError:
        raise
    except SparkError as error:
        raise ConnectorError(str(error)) from error
    # Whatever it is: py4j, gRPC and Python workers have classes of their own.
    except Exception as error:
        if not is_alive():
            said = (
                "Spark's Java process has ended, for lack of memory or because it was killed;"
                " logs/spark.log and logs/spark.out of the home say more"
            )
            if retries >= MAX_TRIES:
                raise ConnectorError(f"{said}; make batch.max.records smaller") from error
            raise RetriableError(said) from error
        if not type(error).__module__.startswith(SPARKS):
            raise
        said = f"{type(error).__name__}: {error}"[:MAX_CHARS]
        if any(word in said for word in HOPELESS) or retries >= MAX_TRIES:
            raise ConnectorError(f"Spark cannot do it: {said}") from error
        raise RetriableError(f"Spark failed: {said}") from error
