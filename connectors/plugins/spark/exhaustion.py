"""Recognizes lack of memory by the texts or the exit code of Spark: pure."""

from typing import Final

from connectors.plugins.spark.batch_size import BatchTooLarge

# Texts of Java, of Spark's memory manager, and of the Python that runs beside each task.
SIGNS: Final = (
    "java.lang.OutOfMemoryError",
    "SparkOutOfMemoryError",
    "UNABLE_TO_ACQUIRE_MEMORY",
    "spark.driver.maxResultSize",
    "Python worker exited unexpectedly",
    "ArrowMemoryError",
    "MemoryError",
)
# Spark's exit code after a java.lang.OutOfMemoryError in a task, and that of a JVM that is set to
# exit on one.
OUT_OF_MEMORY: Final = frozenset({52, 3})
# Errors of the bridge while its Java process is about to end.
LOST: Final = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipe")
# Errors of a query while its Java process shuts down, as it does after lack of memory too.
NO_ANSWER: Final = "Spark's Java process does not say what failed"
ENDING: Final = (NO_ANSWER, "because SparkContext was shut down", "SparkShutdownHookManager")
ADVICE: Final = (
    "give Spark more memory (SAMSA_SPARK_MEMORY, as in 4g), or make batch.max.records smaller"
)
RAN_OUT: Final = "Spark's Java process ran out of memory (java.lang.OutOfMemoryError)"
HAS_ENDED: Final = (
    "Spark's Java process has ended, for lack of memory or because it was killed;"
    " logs/spark.log and logs/spark.out of the home say more"
)
# Limits Spark's text in a log line.
MAX_CHARS: Final = 300


def is_lost(said: str) -> bool:
    """Return whether an error, with its class name, says that Java has ended or is ending."""
    return said.startswith(LOST) or any(word in said for word in ENDING)


def of_end(exit_code: int | None) -> str:
    """Return the message for a Java process that has ended."""
    return f"{RAN_OUT}; {ADVICE}" if exit_code in OUT_OF_MEMORY else HAS_ENDED


def of_words(said: str) -> BatchTooLarge | None:
    """Return the error for a text of Spark about memory; None for any other text."""
    found = next((sign for sign in SIGNS if sign in said), None)
    if found is None:
        return None
    at = max(0, said.index(found) - MAX_CHARS // 3)
    shown = " ".join(said[at : at + MAX_CHARS].split())
    return BatchTooLarge(f"Spark has run out of memory ({shown}); {ADVICE}")
