"""What an agent says of itself, every value defaulted."""

import os
from dataclasses import replace

from brokers.agent_status import WELL, Condition

NOW_MS = 1_700_000_000_000


def condition(**fields: object) -> Condition:
    made = Condition(
        cluster_id="0hUvQ2rWSx6lJ3u8T6kRrg",
        pid=os.getpid(),
        version=7,
        database_age_ms=0,
        condition=WELL,
        message="",
        monotonic_ms=1,
        written_at_ms=NOW_MS,
    )
    return replace(made, **fields)  # type: ignore[arg-type]
