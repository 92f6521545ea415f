"""Reads and writes the status file of a running agent, run/agent-status.json.

Reads and writes nothing of the database. The supervisor and the console read the file, so that a
database that was set back is told to operators, and an agent that hangs can be known by the time of
its last word. Keys are a contract; keys are added, never changed.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

STATUS_FILE: Final = Path("run", "agent-status.json")
# Larger than any status: a message is a few hundred characters.
STATUS_BYTES: Final = 64 * 2**10
WELL: Final = "well"
REGRESSED: Final = "regressed"
DATABASE_AWAY: Final = "database-away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How an agent is. The times are of two clocks: of the machine's boot, and since 1970."""

    cluster_id: str
    pid: int
    version: int
    database_age_ms: int
    condition: str  # one of the three above
    message: str  # why, and what to do; empty where all is well
    monotonic_ms: int
    written_at_ms: int

    @property
    def is_regressed(self) -> bool:
        """The database was set back in time, and the agent does not believe it."""
        return self.condition == REGRESSED


def write(home: Path, condition: Condition) -> None:
    """Put a status into a home, whole or not at all; nothing is synced, as it is soon replaced."""
    file = home / STATUS_FILE
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as written:
        json.dump(asdict(condition), written)
    draft.replace(file)


def remove(home: Path) -> None:
    """Take the status away: who reads none asks whether an agent is there at all."""
    (home / STATUS_FILE).unlink(missing_ok=True)


def read(home: Path) -> Condition | None:
    """Return what the agent of a home said last; None where nothing readable is there."""
    try:
        with (home / STATUS_FILE).open("rb") as file:
            said = json.loads(file.read(STATUS_BYTES))
        return Condition(**{name: said[name] for name in Condition.__slots__})
    except (OSError, ValueError, KeyError, TypeError):
        return None
