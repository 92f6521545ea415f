"""Errors of Spark and of its bridge that mean lack of memory are recognised as such."""

import pytest

from connectors.plugins.spark.exhaustion import is_lost, of_end, of_words

# As Spark 4.3 said them with a heap of 480 MB: on the thread of a query, and of a task.
ON_THE_DRIVER = (
    "Py4JJavaError: An error occurred while calling o67.collectToPython.\n"
    ": java.lang.OutOfMemoryError: Java heap space\n"
    "\tat org.apache.spark.sql.execution.SparkPlan$$anon$1._next(SparkPlan.scala:447)\n"
)
OF_THE_MANAGER = (
    "Py4JJavaError: An error occurred while calling o80.parquet.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0"
    " failed 1 times:"
    " org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire"
    " 65536 bytes of memory, got 0."
)
OF_PYTHON = (
    "Py4JJavaError: ... org.apache.spark.SparkException: Python worker exited unexpectedly"
    " (crashed): java.io.EOFException"
)


@pytest.mark.parametrize("said", [ON_THE_DRIVER, OF_THE_MANAGER, OF_PYTHON])
def test_words_about_memory_say_what_to_do(said: str) -> None:
    error = of_words(said)

    assert error is not None
    assert "out of memory" in str(error)
    assert "SAMSA_SPARK_MEMORY" in str(error)
    assert len(str(error)) < 600


def test_other_words_are_no_lack_of_memory() -> None:
    assert of_words("AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] orders") is None


def test_a_process_that_ended_for_lack_of_memory_is_told_from_one_that_was_killed() -> None:
    assert "java.lang.OutOfMemoryError" in of_end(52)
    assert "java.lang.OutOfMemoryError" not in of_end(-9)
    assert "killed" in of_end(-9)
    assert of_end(None) == of_end(-9)


def test_a_java_process_that_is_ending_is_waited_for() -> None:
    ending = (
        "Py4JJavaError: An error occurred while calling o81.collectToPython.\n"
        ": org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down"
    )

    assert is_lost(ending)
    assert not is_lost(OF_THE_MANAGER)
