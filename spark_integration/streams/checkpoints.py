"""Stores the topology of a checkpoint beside it, through Spark, on whatever storage Spark uses.

The topology determines the layout of a query's state, so another topology would misread it.
"""

import json
import re
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions

from spark_integration.streams.errors import StreamRefused, refused
from spark_integration.streams.topology import Topology, differences

STEP: Final = "run_stream"
# Below the user's checkpoint: those of the query and of its bad records, and their topology.
QUERY: Final = "query"
BAD_RECORDS: Final = "bad_records"
TOPOLOGY: Final = "topology"
# Spark's folder for the offsets of started batches.
OFFSETS: Final = "offsets"
# Characters that Spark treats as a pattern when it reads, but not when it writes.
PATTERN: Final = re.compile(r"[*?\[\]{}\\,]")
MOST_TOLD: Final = 5


def keep_topology(session: Any, topology: Topology, checkpoint: str) -> None:
    """Store the topology of a new checkpoint, or refuse a checkpoint of another topology."""
    if not checkpoint or (found := PATTERN.search(checkpoint)):
        what = f"has {found[0]!r}, a pattern to Spark" if checkpoint and found else "is empty"
        raise refused(STEP, f"the checkpoint {checkpoint!r} {what}", "name a folder without it")
    place = f"{checkpoint}/{TOPOLOGY}"
    lines = lines_of(session, place)
    if lines:
        require_same(topology, checkpoint, lines)
        return
    for folder in (OFFSETS, f"{QUERY}/{OFFSETS}"):
        if lines_of(session, f"{checkpoint}/{folder}"):
            raise refused(
                STEP,
                f"the checkpoint {checkpoint!r} has progress, but not of a topology",
                "name a folder that nothing else writes to",
            )
    text = functions.lit(json.dumps(topology.to_json()))
    written = session.range(1).select(text.alias("value")).coalesce(1)
    # An interrupted start has left an incomplete file.
    written.write.mode("overwrite").text(place)


def require_same(topology: Topology, checkpoint: str, lines: list[str]) -> None:
    try:
        before = json.loads("".join(lines))
    except ValueError:
        raise refused(
            STEP,
            f"{checkpoint}/{TOPOLOGY} cannot be read as the topology of the checkpoint",
            "restore it, or use another checkpoint",
        ) from None
    # Compare as JSON, in which tuples are lists.
    now = json.loads(json.dumps(topology.to_json()))
    found = differences(before, now)
    if not found:
        return
    more = [f"and {len(found) - MOST_TOLD} more"] if len(found) > MOST_TOLD else []
    told = "\n".join(f"  {line}" for line in [*found[:MOST_TOLD], *more])
    raise StreamRefused(
        f"{STEP}: the checkpoint {checkpoint!r} is of another topology:\n{told}\n"
        "run the former topology, or give the changed one a checkpoint of its own, where it"
        " starts over"
    )


def lines_of(session: Any, place: str) -> list[str]:
    """Return the first lines of all files in a folder; none if it does not exist."""
    try:
        return [row.value for row in session.read.text(place).limit(2).collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
