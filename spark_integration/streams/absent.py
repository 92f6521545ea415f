"""Names the steps of Kafka Streams that streams lack, each with what to do instead. Pure."""

import re
from typing import Final

from spark_integration.streams.errors import StreamRefused

ONE_ROW: Final = (
    "a step makes one row of each row: split values before they are written to the topic, or with"
    " explode in a job of your own (docs/howto/read-with-spark.md)"
)
ONE_TOPIC: Final = (
    "a topology reads one topic: join in a job of your own"
    " (docs/howto/join-a-stream-with-a-table.md)"
)
NO_CODE: Final = (
    "code of a program is not run on rows: compute fields with select, or read the result's topic"
    " with a consumer"
)
# By their names in snake case.
ABSENT: Final = {
    **dict.fromkeys(("flat_map", "flat_map_values", "explode", "split_values"), ONE_ROW),
    **dict.fromkeys(("join", "left_join", "outer_join", "cogroup"), ONE_TOPIC),
    **dict.fromkeys(("table", "to_table", "global_table", "k_table"), ONE_TOPIC),
    **dict.fromkeys(("process", "process_values", "transform", "transform_values"), NO_CODE),
    **dict.fromkeys(("for_each", "foreach", "peek", "print"), NO_CODE),
    "merge": "a topology reads one topic: write both into one topic, each with a topology",
    **dict.fromkeys(("branch", "split"), "make a topology for each branch, each with its where"),
    **dict.fromkeys(
        ("repartition", "through"), "write with to, and read the result with a second topology"
    ),
    **dict.fromkeys(("map", "map_values", "select_key"), "use select, and group for the key"),
    "filter": "use where",
    "filter_not": "use where with ~ before the condition",
    **dict.fromkeys(("group_by", "group_by_key"), "use group with the names of fields"),
    "windowed_by": "use window",
    "suppress": "use final",
    **dict.fromkeys(
        ("count", "reduce", "sum", "min", "max", "avg", "first", "last", "collect", "distinct"),
        "use aggregate with a name for each result, as in aggregate(n=count())",
    ),
}
HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class StepAbsent(StreamRefused, AttributeError):
    """A topology names a step that streams lack."""


def absent(name: str) -> AttributeError:
    """Return the error for an attribute that a stream does not have."""
    advice = ABSENT.get(HUMP.sub("_", name).lower())
    if advice is None:
        return AttributeError(f"a stream has no step {name!r}")
    return StepAbsent(f"{name}: streams have no such step; {advice}")
