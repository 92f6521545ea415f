"""Reads and writes what the agent of a home leaves there: the mark of its process, its status.

Does not use the database: this works even if the agent, the source of all other information, is
gone. The mark shows whether the agent has ended. The agent writes its status once a second, into
run/agent-status.json; supervisor, web server and gateway read it, so that operators learn whether
the cluster can be changed: not while the database is away, was restored from an older copy, or
refuses writes, and not while the agent hangs, which the age of the file reveals. Keys of the status
are a contract; keys are added, never changed.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

# The file is the agent's lock too, which a process that only checks must not take even briefly.
MARK_FILE: Final = "agent.lock"
PROCESSES: Final = Path("/proc")
# Larger than any mark.
MARK_BYTES: Final = 128
STATUS_FILE: Final = Path("run", "agent-status.json")
# Larger than any status: a message is a few hundred characters.
STATUS_BYTES: Final = 64 * 2**10
# A status of this age was not written in time, however busy the machine.
OLD_MS: Final = 5_000
WELL: Final = "well"
REGRESSED: Final = "regressed"
DATABASE_AWAY: Final = "database-away"
CHANGES_WAIT: Final = "changes-wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The status of an agent. Its times are of two clocks: since the boot, and since 1970."""

    cluster_id: str
    pid: int
    version: int
    database_age_ms: int
    condition: str  # one of the four above
    message: str  # why, and what to do; empty if all is well
    monotonic_ms: int
    written_at_ms: int
    # How long the oldest change waits for the database; 0 if none does.
    oldest_write_ms: int = 0
    # Why the database refused a change last, and when; empty if it never did.
    last_refusal: str = ""
    last_refusal_at_ms: int = 0
    # Which other files of the home take no writes, and why; empty if all do.
    other_files: str = ""

    @property
    def is_regressed(self) -> bool:
        """Whether the database was restored from an older copy, which the agent does not follow."""
        return self.condition == REGRESSED

    def trouble(self, *, monotonic_ms: int) -> str:
        """Return why the cluster cannot be changed, or why that is not known; empty if it can."""
        age_ms = monotonic_ms - self.monotonic_ms
        if age_ms > OLD_MS:
            return (
                f"the agent has not responded for {age_ms // 1000} s, so nothing can be changed "
                "and a broker that ends may still be shown as serving"
            )
        return "" if self.condition == WELL else self.message or self.condition

    def public_trouble(self, *, monotonic_ms: int) -> str:
        """Return the trouble for any client: the database's own words name hosts and users."""
        trouble = self.trouble(monotonic_ms=monotonic_ms)
        if self.condition == CHANGES_WAIT and trouble == self.message:
            return f"no change for {self.oldest_write_ms // 1000} s: `./samsa status` says why"
        return trouble


def mark() -> str:
    """Return the mark of this process: its id, and the namespace of that id."""
    return f"{os.getpid()}\n{_namespace()}\n"


def is_gone(home: Path) -> bool:
    """Tell whether the agent that was last in this home has ended.

    A process of another namespace is not visible here, and is not reported as dead.
    """
    try:
        with (home / MARK_FILE).open(encoding="ascii") as file:
            process, namespace = file.read(MARK_BYTES).split()
    except (OSError, ValueError):
        return False
    if namespace != _namespace() or not process.isdigit():
        return False
    try:
        words = (PROCESSES / process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return True
    # The id was reused by another process.
    return b"agent" not in words


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
        # An agent of an earlier release lacks the newer keys.
        return Condition(**{name: said[name] for name in Condition.__slots__ if name in said})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _namespace() -> str:
    try:
        return str((PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return "unknown"
