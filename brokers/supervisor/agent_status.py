"""What the agent of a home says of itself: the file that it writes once a second.

The supervisor speaks with no database, and knows by this alone that the cluster's was set back or
is away. The other end is `brokers.controlplane.condition`.
"""

import json
from pathlib import Path
from typing import Final

STATUS_FILE: Final = "agent-status.json"
# Larger than any status.
STATUS_BYTES: Final = 64 * 2**10
WELL: Final = "well"


def trouble(run: Path, pid: int | None) -> str:
    """Return why a running agent cannot do its work; empty where it can, or says nothing."""
    try:
        with (run / STATUS_FILE).open("rb") as file:
            said = json.loads(file.read(STATUS_BYTES))
    except (OSError, ValueError):
        return ""
    # What a former process has said is over.
    if not isinstance(said, dict) or said.get("pid") != pid or said.get("condition") == WELL:
        return ""
    return str(said.get("message") or said.get("condition") or "")
