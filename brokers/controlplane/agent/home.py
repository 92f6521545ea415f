"""What an agent keeps in its home: the lock that makes it the only one, and who it is."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK_FILE: Final = "agent.lock"
ID_FILE: Final = "agent-id"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class HomeInUse(Exception):
    """Another agent holds the home; the text says which, and what to do."""


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the home; HomeInUse where another agent does."""
    home.mkdir(parents=True, exist_ok=True)
    handle = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise HomeInUse(
                f"{home} is in use by an agent with process id {holder}: stop it, "
                f"or choose another home"
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(handle)


def agent_id(home: Path) -> str:
    """Return who the agent of this home is; the first one decides."""
    file = home / ID_FILE
    try:
        return str(uuid.UUID(file.read_text(encoding="ascii").strip()))
    except FileNotFoundError:
        made = str(uuid.uuid4())
    draft = file.with_suffix(".new")
    draft.write_text(f"{made}\n", encoding="ascii")
    draft.replace(file)
    return made


def host_name() -> str:
    return os.uname().nodename


def boot_id() -> str:
    """Return the running kernel's id; empty where there is none to read."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
