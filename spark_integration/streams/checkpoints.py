"""Which topology a checkpoint belongs to: kept beside it, by Spark itself, wherever that writes.

What a query remembers is laid out by its topology, so another one would misread it.
"""

import json
import re
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions

from spark_integration.streams.errors import StreamRefused, refused
from spark_integration.streams.topology import Topology, differences

STEP: Final = "run_stream"
# Below the checkpoint of an author: of the query, of its bad records, and what both belong to.
QUERY: Final = "query"
BAD_RECORDS: Final = "bad_records"
TOPOLOGY: Final = "topology"
# Where Spark keeps what it has begun to read.
OFFSETS: Final = "offsets"
# What Spark takes for a pattern where it reads, and not where it writes.
PATTERN: Final = re.compile(r"[*?\[\]{}\\,]")
MOST_TOLD: Final = 5


def keep_topology(session: Any, topology: Topology, checkpoint: str) -> None:
    """Note which topology a checkpoint is of, or refuse one that is of another."""
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
    # What a start that was interrupted has left is no topology yet.
    written.write.mode("overwrite").text(place)


def require_same(topology: Topology, checkpoint: str, lines: list[str]) -> None:
    try:
        before = json.loads("".join(lines))
    except ValueError:
        raise refused(
            STEP,
            f"{checkpoint}/{TOPOLOGY} cannot be read as the topology of the checkpoint",
            "restore it, or begin with another checkpoint",
        ) from None
    # As JSON has it, where tuples are lists.
    now = json.loads(json.dumps(topology.to_json()))
    found = differences(before, now)
    if not found:
        return
    more = [f"and {len(found) - MOST_TOLD} more"] if len(found) > MOST_TOLD else []
    told = "\n".join(f"  {line}" for line in [*found[:MOST_TOLD], *more])
    raise StreamRefused(
        f"{STEP}: the checkpoint {checkpoint!r} is of another topology:\n{told}\n"
        "run the topology as it was, or give the changed one a checkpoint of its own, where it"
        " begins anew"
    )


def lines_of(session: Any, place: str) -> list[str]:
    """Return the first lines of all files in a folder; none where it is not there."""
    try:
        return [row.value for row in session.read.text(place).limit(2).collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
