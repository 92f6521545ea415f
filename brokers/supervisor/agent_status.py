"""Reads the status that the agent of a home writes into a file once a second.

The supervisor uses no database; this file is its only sign that the cluster's database is away or
was restored from an older copy. The other end is `brokers.controlplane.condition`.
"""

import json
from pathlib import Path
from typing import Final

STATUS_FILE: Final = "agent-status.json"
# Larger than any status.
STATUS_BYTES: Final = 64 * 2**10
WELL: Final = "well"


def trouble(run: Path, pid: int | None) -> str:
    """Return why a running agent cannot do its work; empty if it can, or if there is no status."""
    try:
        with (run / STATUS_FILE).open("rb") as file:
            said = json.loads(file.read(STATUS_BYTES))
    except (OSError, ValueError):
        return ""
    # The status of a former process no longer holds.
    if not isinstance(said, dict) or said.get("pid") != pid or said.get("condition") == WELL:
        return ""
    return str(said.get("message") or said.get("condition") or "")
