"""Queues writers of a SQLite file: processes write in the order in which they ask.

SQLite has no queue. A writer that finds the file locked sleeps and retries, so one process that
writes without a pause starves the others for seconds. Here a writer first takes two locks on files
beside the database: `-queue`, which it holds until it has `-writer`. At most one process therefore
waits for `-writer`, and a process that has just written queues behind the waiting ones. An urgent
writer skips the queue and holds `-urgent` until it has `-writer`; the head of the queue requests
`-writer` only while `-urgent` is free. The kernel wakes the next waiter of a lock and lets a
running process take it first, so without `-urgent` many others would go ahead on a busy machine.

The locks are flocks, which the kernel frees when their process ends, however it ends. They order
writers and protect nothing: SQLite's own locks still do, also against programs without this queue.
Knows no SQL and no Django.
"""

import errno
import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

QUEUE_SUFFIX: Final = "-queue"
WRITER_SUFFIX: Final = "-writer"
URGENT_SUFFIX: Final = "-urgent"
# Threads of one process that wait in the kernel for a turn, including those whose caller has given
# up. A web server has a connection for each request; further ones wait for a place here.
MAX_WAITING: Final = 64
# A process id and a newline.
HOLDER_BYTES: Final = 32


class TurnTimeout(Exception):
    """The wait for the turn timed out; the text names the file and the holder of the lock."""


class Turn:
    """The turns of one connection. Used by one thread at a time; each has its own open files."""

    def __init__(self, database: Path, *, is_urgent: bool) -> None:
        self._database = database
        self._writer = Path(f"{database}{WRITER_SUFFIX}")
        self._is_urgent = is_urgent
        self._files: _Files | None = None
        # A wait whose caller has given up: it keeps its place until the next attempt.
        self._wait: _Wait | None = None
        self.is_held = False

    def take(self, timeout_s: float) -> None:
        """Wait for the turn. Raises TurnTimeout."""
        files = self._opened()
        assert not self.is_held, "a connection has one turn at a time"
        deadline = time.monotonic() + timeout_s
        if self._wait is None and not files.take_at_once(is_urgent=self._is_urgent):
            self._wait = self._begun_wait(files, deadline)
        while self._wait is not None:
            wait = self._wait
            is_over = wait.is_over(deadline - time.monotonic())
            if not is_over:
                raise TurnTimeout(self._complaint(timeout_s))
            self._wait = None
            if not wait.is_granted():
                # It was granted after its caller had given up, and was given back.
                self._wait = self._begun_wait(files, deadline)
        self.is_held = True
        files.sign()

    def give_back(self) -> None:
        """End the turn, if there is one."""
        if self.is_held and self._files is not None:
            self.is_held = False
            self._files.release()

    def close(self) -> None:
        """Give the turn back and close the files; an unfinished wait closes them at its end."""
        self.give_back()
        wait, self._wait = self._wait, None
        files, self._files = self._files, None
        if wait is not None:
            wait.abandon()
        elif files is not None:
            files.close()

    def _opened(self) -> "_Files":
        files = self._files
        # A forked child shares open files, and so would share the locks on them.
        if files is not None and files.pid != os.getpid():
            files.close()
            files, self._wait, self.is_held = None, None, False
        if files is None:
            files = self._files = _Files(self._database)
        return files

    def _begun_wait(self, files: "_Files", deadline: float) -> "_Wait":
        try:
            return _Wait(files, is_urgent=self._is_urgent, deadline=deadline)
        except BaseException:
            # Otherwise this would keep the head of the queue without waiting for anything.
            files.leave_queue()
            raise

    def _complaint(self, timeout_s: float) -> str:
        holder = _holder_of(self._writer)
        who = f"process {holder}" if holder else "an unknown process"
        return (
            f"database is locked: waited {timeout_s:g} s for {self._writer}, which {who} holds; "
            f"if that process hangs, stop it"
        )


class _Files:
    """The open lock files of a connection."""

    # -1: not open, also if one could not be opened.
    queue = urgent = writer = -1

    def __init__(self, database: Path) -> None:
        self.pid = os.getpid()
        try:
            self.queue = _open_file(database, QUEUE_SUFFIX)
            self.urgent = _open_file(database, URGENT_SUFFIX)
            self.writer = _open_file(database, WRITER_SUFFIX)
        except OSError:
            self.close()
            raise

    def __del__(self) -> None:
        """Close files of a thread that ended with them open, as sqlite3 does."""
        self.close()

    def take_at_once(self, *, is_urgent: bool) -> bool:
        """Take the turn if it is free; otherwise a place at the head of the queue is kept."""
        if is_urgent:
            # If another urgent writer waits, `take` waits for its lock.
            if not _locked_at_once(self.urgent):
                return False
        elif not _locked_at_once(self.queue) or not self._is_nobody_urgent():
            return False
        if not _locked_at_once(self.writer):
            return False
        self.leave_queue()
        return True

    def take(self, *, is_urgent: bool) -> None:
        """Take the turn, however long that takes."""
        if is_urgent:
            fcntl.flock(self.urgent, fcntl.LOCK_EX)
        else:
            fcntl.flock(self.queue, fcntl.LOCK_EX)
            fcntl.flock(self.urgent, fcntl.LOCK_EX)
            # From here on, an urgent writer goes ahead of the next head of the queue.
            fcntl.flock(self.urgent, fcntl.LOCK_UN)
        fcntl.flock(self.writer, fcntl.LOCK_EX)
        self.leave_queue()

    def _is_nobody_urgent(self) -> bool:
        is_nobody = _locked_at_once(self.urgent)
        if is_nobody:
            fcntl.flock(self.urgent, fcntl.LOCK_UN)
        return is_nobody

    def sign(self) -> None:
        """Write the process id of the holder, for the message of a timeout."""
        # A full disk must not keep a turn that its owner believes it did not get.
        with suppress(OSError):
            os.pwrite(self.writer, f"{self.pid:<{HOLDER_BYTES - 1}}\n".encode("ascii"), 0)

    def release(self) -> None:
        fcntl.flock(self.writer, fcntl.LOCK_UN)

    def leave_queue(self) -> None:
        """Let the next writer wait for the writer's lock, or stop waiting."""
        fcntl.flock(self.queue, fcntl.LOCK_UN)
        fcntl.flock(self.urgent, fcntl.LOCK_UN)

    def close(self) -> None:
        handles = (self.queue, self.urgent, self.writer)
        self.queue = self.urgent = self.writer = -1
        for handle in handles:
            if handle >= 0:
                os.close(handle)


class _Wait:
    """A thread that waits in the kernel, because flock has no timeout."""

    _places = threading.Semaphore(MAX_WAITING)
    _mutex = threading.Lock()

    def __init__(self, files: _Files, *, is_urgent: bool, deadline: float) -> None:
        if not _Wait._places.acquire(blocking=False):
            # Threads in all places may wait for the head of the queue, which this one has.
            files.leave_queue()
            if not _Wait._places.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise TurnTimeout(
                    f"database is locked: {MAX_WAITING} threads of this process wait for it"
                )
        self._files = files
        self._is_urgent = is_urgent
        self._is_wanted = True
        self._is_abandoned = False
        self._is_granted = False
        self._error: OSError | None = None
        self._ended = threading.Event()
        # A daemon, so that a process can end while another one hangs with the lock.
        try:
            threading.Thread(target=self._run, name="sqlite turn", daemon=True).start()
        except RuntimeError:
            _Wait._places.release()
            raise

    def is_over(self, timeout_s: float) -> bool:
        """Wait; False: not yet, and the turn is unwanted until the next call."""
        with _Wait._mutex:
            self._is_wanted = True
        if self._ended.wait(max(0.0, timeout_s)):
            return True
        with _Wait._mutex:
            self._is_wanted = False
            return self._ended.is_set()

    def is_granted(self) -> bool:
        """Tell whether the turn is held, once the wait is over."""
        if self._error is not None:
            raise self._error
        return self._is_granted

    def abandon(self) -> None:
        """Leave the files to the thread, which closes them."""
        with _Wait._mutex:
            self._is_wanted = False
            self._is_abandoned = True
            is_over = self._ended.is_set()
        if is_over:
            self._files.close()

    def _run(self) -> None:
        try:
            self._files.take(is_urgent=self._is_urgent)
        except OSError as error:
            self._error = error
        with _Wait._mutex:
            self._is_granted = self._is_wanted and self._error is None
            if not self._is_granted and self._error is None:
                self._files.release()
            self._ended.set()
            is_abandoned = self._is_abandoned
        _Wait._places.release()
        if is_abandoned:
            self._files.close()


def _open_file(database: Path, suffix: str) -> int:
    handle = os.open(f"{database}{suffix}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.geteuid() == 0:
        # As SQLite does with its journal: a command of root must not lock out the home's user.
        with suppress(OSError):
            owner = database.stat()
            os.fchown(handle, owner.st_uid, owner.st_gid)
    return handle


def _locked_at_once(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in {errno.EAGAIN, errno.EWOULDBLOCK}:
            raise
        return False
    return True


def _holder_of(writer: Path) -> str:
    """Return the last recorded process id; empty if there is none."""
    try:
        with writer.open("rb") as file:
            text = file.read(HOLDER_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return ""
    return text if text.isdigit() else ""
