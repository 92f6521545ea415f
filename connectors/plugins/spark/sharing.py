"""Checks that a remote Spark and the worker see the same folder for a table.

Spark writes the files of a batch, and the worker moves them into the table: both need one folder
under one path. Otherwise Spark would write a batch where the worker does not look for it. So the
worker writes a word that Spark must read, and then Spark writes files that the worker must find
and move.
"""

import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connectors.sdk.errors import ConnectorError, RetriableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A separate task writes each file, so that most executors of a small cluster write one.
FILES: Final = 8
OURS, THEIRS, TAKEN = "worker.txt", "spark", "taken"
# Texts of Spark for a path that is missing or not accessible, on the driver or on an executor.
NOT_THERE: Final = ("PATH_NOT_FOUND", "FileNotFound", "FILE_NOT_EXIST", "does not exist")
NOT_ALLOWED: Final = ("Permission denied", "AccessControl", "Mkdirs failed", "mkdir of file")
# What the user can do about it.
WHAT_TO_DO: Final = (
    "mount the home's folder `files` under this path on each machine of that Spark (or start Spark"
    " where the worker is), and run both as one user"
)


def require_shared(spark: "SparkSession", folder: Path, where: str) -> None:
    """Raise ConnectorError if Spark and this process do not share the folder."""
    probe = folder / f"probe-{uuid.uuid4().hex}"
    try:
        probe.mkdir(parents=True)
        word = uuid.uuid4().hex
        (probe / OURS).write_text(word, encoding="utf-8")
        _require_read(spark, probe, word, where)
        _require_written(spark, probe, where)
    except OSError as error:
        raise RetriableError(f"{probe} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(probe)


def _require_read(spark: "SparkSession", probe: Path, word: str, where: str) -> None:
    try:
        found = [row[0] for row in spark.read.text(f"file:{probe / OURS}").collect()]
    # Spark raises many classes; the text tells the cause.
    except Exception as error:
        if _says(error, (*NOT_THERE, *NOT_ALLOWED)):
            raise ConnectorError(
                f"the Spark at {where} cannot read {probe.parent}, which the worker has written"
                f" to: {WHAT_TO_DO}"
            ) from error
        raise
    if found != [word]:
        raise ConnectorError(
            f"the Spark at {where} sees another folder at {probe.parent}: {WHAT_TO_DO}"
        )


def _require_written(spark: "SparkSession", probe: Path, where: str) -> None:
    words = spark.range(0, FILES, 1, FILES).selectExpr("CAST(id AS STRING) AS value")
    try:
        words.write.text(f"file:{probe / THEIRS}")
    # As above.
    except Exception as error:
        if _says(error, NOT_ALLOWED):
            raise ConnectorError(
                f"the Spark at {where} cannot write to {probe.parent}: {WHAT_TO_DO}"
            ) from error
        raise
    there = sorted((probe / THEIRS).glob("part-*"))
    told = {line for path in there for line in path.read_text(encoding="utf-8").split()}
    if len(told) != FILES:
        raise ConnectorError(
            f"of {FILES} files that the Spark at {where} wrote to {probe.parent}, the worker finds"
            f" {len(told)}: {WHAT_TO_DO}"
        )
    try:
        # As the worker does with each file of a batch.
        (probe / TAKEN).mkdir()
        for path in there:
            path.replace(probe / TAKEN / path.name)
    except PermissionError as error:
        raise ConnectorError(
            f"the worker may not move what the Spark at {where} writes to {probe.parent}:"
            f" {WHAT_TO_DO}"
        ) from error


def _says(error: Exception, words: tuple[str, ...]) -> bool:
    said = str(error)
    return any(word in said for word in words)
