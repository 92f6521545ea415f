"""Manages the agent's lock and id in its home."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from brokers.agent_status import MARK_BYTES, MARK_FILE, mark

ID_FILE: Final = "agent-id"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class HomeInUse(Exception):
    """Another agent holds the home; the text says which, and what to do."""


class HomeDamaged(Exception):
    """The home's files about its agent are invalid; the text says what to do."""


class NewerRelease(Exception):
    """A database was written by a newer release; the text says which, and what to do."""


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the home's lock; HomeInUse if another agent has it."""
    home.mkdir(parents=True, exist_ok=True)
    handle = os.open(home / MARK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            told = os.pread(handle, MARK_BYTES, 0).decode("ascii", "replace").split()
            holder = told[0] if told else "unknown"
            raise HomeInUse(
                f"{home} is in use by an agent with process id {holder}: stop it, "
                f"or choose another home"
            ) from error
        # In this order a full disk does not refuse it: the file keeps its block.
        os.ftruncate(handle, os.pwrite(handle, mark().encode("ascii"), 0))
        yield
    finally:
        os.close(handle)


def agent_id(home: Path) -> str:
    """Return the id of this home's agent; the first one creates it."""
    file = home / ID_FILE
    try:
        return str(uuid.UUID(file.read_text(encoding="ascii").strip()))
    except FileNotFoundError:
        made = str(uuid.uuid4())
    except ValueError as error:
        raise HomeDamaged(
            f"{file} holds no agent id: put it back from a copy of the home, or write into it the "
            f"agent_id that the table controlplane_agent has for this host"
        ) from error
    replace_text(file, f"{made}\n")
    return made


def replace_text(file: Path, text: str) -> None:
    """Write a small file atomically, unless it has the same text already."""
    with suppress(OSError, UnicodeDecodeError):
        if file.read_text(encoding="ascii") == text:
            return
    draft = file.with_suffix(".new")
    with draft.open("w", encoding="ascii") as written:
        written.write(text)
        written.flush()
        # Before the rename: a power cut must not leave an agent without an id.
        os.fsync(written.fileno())
    draft.replace(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def host_name() -> str:
    return os.uname().nodename


def boot_id() -> str:
    """Return the boot id of the kernel; empty if it cannot be read."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
