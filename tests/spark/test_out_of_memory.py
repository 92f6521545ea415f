"""A Spark that runs out of memory is named so and replaced, and its process lives."""

import json
from pathlib import Path

import pytest

from tests.extras import requires
from tests.spark.processes import run_program

pytestmark = [requires("java", "spark"), pytest.mark.slow]

# Two sessions take 12 s on an idle machine.
SECONDS = 200


@pytest.mark.timeout(SECONDS + 10)
def test_lack_of_memory_is_told_by_its_name_and_another_session_follows(tmp_path: Path) -> None:
    program = "tests.spark.exhausted_session"
    done = run_program(program, str(tmp_path), seconds=SECONDS)

    assert done.returncode == 0, done.stdout + done.stderr
    on_the_driver, after, in_a_task = map(json.loads, done.stdout.splitlines())
    for said in (on_the_driver, in_a_task):
        assert said.startswith("BatchTooLarge: Spark")
        assert "java.lang.OutOfMemoryError" in said
        assert "SAMSA_SPARK_MEMORY" in said
    assert after == "rows: 3"
