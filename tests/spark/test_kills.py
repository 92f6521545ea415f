"""A stream that is killed by force at its batch boundaries reads every row once."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.extras import requires
from tests.scale import count
from tests.spark.killed_job import ROWS_OF_A_BATCH, copy
from tests.spark.processes import run_program
from tests.spark.topics import create, fill
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

# A start takes 12 s on an idle machine.
SECONDS = 200
PARTITIONS = 2
# Batch 0 before it wrote is where a beginning that nobody keeps loses rows.
MOMENTS = [(batch, moment) for batch in range(10) for moment in ("before", "after")]


def run(bootstrap: str, topic: str, folder: Path, batch: int, moment: str) -> int:
    arguments = [bootstrap, topic, str(folder), str(batch), moment]
    done = run_program("tests.spark.killed_job", *arguments, seconds=SECONDS)
    assert done.returncode in {0, -signal.SIGKILL}, done.stdout + done.stderr
    return done.returncode


@pytest.mark.timeout(SECONDS * (len(MOMENTS) + 1))
def test_a_stream_that_is_killed_at_its_boundaries_reads_every_row_once(
    spark: Any, unique: Callable[[str], str], tmp_path: Path
) -> None:
    bootstrap = shared_home().bootstrap
    topic = create(bootstrap, unique("killed"), partitions=PARTITIONS)
    (tmp_path / "out").mkdir()
    # In CI, both moments of a batch; each kill costs a start of Spark.
    kills = count(1, 2, long=20)
    each = 0
    for batch, moment in MOMENTS[:kills]:
        fill(bootstrap, topic, {0: ROWS_OF_A_BATCH, 1: ROWS_OF_A_BATCH})
        each += ROWS_OF_A_BATCH

        assert run(bootstrap, topic, tmp_path, batch, moment) == -signal.SIGKILL

    # The last start is in the Spark that is there.
    copy(spark, bootstrap, topic, tmp_path, lambda _batch, _moment: None)
    rows = [
        tuple(row)
        for path in (tmp_path / "out").glob("*.json")
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]
    assert sorted(rows) == [(part, at) for part in range(PARTITIONS) for at in range(each)]
