"""What Spark says, or how it ends, where a batch has not fitted into memory: pure."""

from typing import Final

from connectors.plugins.spark.batch_size import BatchTooLarge

# Words of Java, of Spark's own memory manager, and of the Python that runs beside each task.
SIGNS: Final = (
    "java.lang.OutOfMemoryError",
    "SparkOutOfMemoryError",
    "UNABLE_TO_ACQUIRE_MEMORY",
    "spark.driver.maxResultSize",
    "Python worker exited unexpectedly",
    "ArrowMemoryError",
    "MemoryError",
)
# Spark ends its process so where a task meets java.lang.OutOfMemoryError; a JVM that was told to
# end upon it ends with 3.
OUT_OF_MEMORY: Final = frozenset({52, 3})
# What the bridge says while its Java process is about to end.
LOST: Final = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipe")
# What a query says while its Java process ends in order, as it does after lack of memory too.
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
# Of what Spark said, in a line.
MAX_CHARS: Final = 300


def is_lost(said: str) -> bool:
    """Tell whether an error, with the name of its class, says that Java has ended or is ending."""
    return said.startswith(LOST) or any(word in said for word in ENDING)


def of_end(exit_code: int | None) -> str:
    """Return what to say of a Java process that is gone."""
    return f"{RAN_OUT}; {ADVICE}" if exit_code in OUT_OF_MEMORY else HAS_ENDED


def of_words(said: str) -> BatchTooLarge | None:
    """Return the error that stands for words of Spark about memory; None for any others."""
    found = next((sign for sign in SIGNS if sign in said), None)
    if found is None:
        return None
    at = max(0, said.index(found) - MAX_CHARS // 3)
    shown = " ".join(said[at : at + MAX_CHARS].split())
    return BatchTooLarge(f"Spark has run out of memory ({shown}); {ADVICE}")
