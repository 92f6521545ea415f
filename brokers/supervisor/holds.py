"""Records the brokers of a home that a user stopped or put on hold, across restarts of the home.

Stored in `held.json`, since a broker that was stopped on purpose (for example to change its disk)
must not come back with the next start of the machine. One on hold runs and is watched, but is not
restarted, so that a user can examine it while it hangs or after it has ended. The agent reads the
file too, for pages.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from brokers.supervisor.errors import StartRefused

HOLDS_FILE: Final = "held.json"
# A hundred brokers, each with a name of maximum length, whose characters take up to twelve bytes
# each in JSON.
MAX_FILE_BYTES: Final = 512 * 2**10
# The length to which a requester's name is cut.
MAX_NAME: Final = 249


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The user who holds a broker, and since when. `broker_id` is -1 if it never had one."""

    by: str
    at_ms: int
    broker_id: int
    # False: on hold, which means that it runs but is not restarted.
    is_stopped: bool = True


def read(home: Path) -> dict[str, Hold]:
    """Return holds by component; ValueError if the file is invalid."""
    file = home / HOLDS_FILE
    try:
        with file.open("rb") as opened:
            said = json.loads(opened.read(MAX_FILE_BYTES))
        return {str(name): _hold(entry) for name, entry in said.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} does not say which brokers are stopped ({error}): remove it to start all"
        ) from error


def read_at_start(home: Path) -> dict[str, Hold]:
    """Return holds at a start; StartRefused if a broker might be started by mistake."""
    try:
        return read(home)
    except (ValueError, OSError) as error:
        raise StartRefused(str(error)) from error


def write(home: Path, holds: Mapping[str, Hold]) -> None:
    """Replace the file atomically; return only once it is safe on the disk."""
    file = home / HOLDS_FILE
    draft = file.with_suffix(".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as written:
        json.dump({name: asdict(hold) for name, hold in holds.items()}, written)
        written.flush()
        os.fsync(written.fileno())
    draft.replace(file)
    # Sync the new name, too: after a power cut the old file would let a stopped broker start.
    folder = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _hold(entry: Mapping[str, object]) -> Hold:
    by, at_ms, broker_id = entry["by"], entry["at_ms"], entry["broker_id"]
    # Files of earlier releases have only brokers that were stopped.
    is_stopped = entry.get("is_stopped", True)
    if not isinstance(by, str) or type(at_ms) is not int or type(broker_id) is not int:
        raise TypeError(f"{entry!r} is not a hold")
    if not isinstance(is_stopped, bool):
        raise TypeError(f"{entry!r} is not a hold")
    return Hold(by=by[:MAX_NAME], at_ms=at_ms, broker_id=broker_id, is_stopped=is_stopped)
