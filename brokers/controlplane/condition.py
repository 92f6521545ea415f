"""Reads and writes the status file of a running agent, run/agent-status.json.

Does not use the database. The supervisor and the console read the file, so that operators learn of
a database that was restored from an older copy, and so that the time of the last status reveals an
agent that hangs. Keys are a contract; keys are added, never changed.
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
    """The status of an agent. Its times are of two clocks: since the boot, and since 1970."""

    cluster_id: str
    pid: int
    version: int
    database_age_ms: int
    condition: str  # one of the three above
    message: str  # why, and what to do; empty if all is well
    monotonic_ms: int
    written_at_ms: int

    @property
    def is_regressed(self) -> bool:
        """Whether the database was restored from an older copy, which the agent does not follow."""
        return self.condition == REGRESSED


def write(home: Path, condition: Condition) -> None:
    """Write a status into a home atomically, without a sync, as it is soon replaced."""
    file = home / STATUS_FILE
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as written:
        json.dump(asdict(condition), written)
    draft.replace(file)


def remove(home: Path) -> None:
    """Remove the status; readers without one check whether an agent runs at all."""
    (home / STATUS_FILE).unlink(missing_ok=True)


def read(home: Path) -> Condition | None:
    """Return the last status of the home's agent; None if there is no readable one."""
    try:
        with (home / STATUS_FILE).open("rb") as file:
            said = json.loads(file.read(STATUS_BYTES))
        return Condition(**{name: said[name] for name in Condition.__slots__})
    except (OSError, ValueError, KeyError, TypeError):
        return None
