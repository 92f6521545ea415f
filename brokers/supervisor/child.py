"""Runs a child process in its own process group, tied to this process, and awaits its end.

It ends with the supervisor in any case: the kernel sends it SIGTERM when its parent dies.
Its end is awaited on a pidfd, so there is no thread and no signal handler for children.
"""

import asyncio
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

PR_SET_PDEATHSIG: Final = 1
# Looked up before any fork: between fork and exec nothing should be loaded.
PRCTL: Final = ctypes.CDLL(None, use_errno=True).prctl
# A shell's exit status for a process that was interrupted before it began.
NEVER_BEGAN: Final = 128 + signal.SIGTERM


def tie_to_parent(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when `parent` dies; run after the fork."""
    # Signals that arrive before exec are for the child, and must not reach the parent's loop.
    signal.set_wakeup_fd(-1)
    PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)
    # If the parent died before the call above, no signal will come.
    if os.getppid() != parent:
        os._exit(NEVER_BEGAN)


class Child:
    """A running process. `exited` resolves to its exit status, negative for a signal."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        folder: Path,
        inherited: Sequence[int] = (),
    ) -> None:
        parent = os.getpid()
        # The pipe of the ready line. The child gets only its write end.
        self.ready_pipe, ready_end = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 (the commands are a table of ours)
                command,
                env={**environment, "SAMSA_READY_FD": str(ready_end)},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(ready_end, *inherited),
                # Safe here: the supervisor has no threads.
                preexec_fn=lambda: tie_to_parent(parent),  # noqa: PLW1509
            )
        except OSError:
            os.close(self.ready_pipe)
            raise
        finally:
            os.close(ready_end)
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self._pidfd = -1
        try:
            with self._process.stdout as pipe:
                self._pidfd = os.pidfd_open(self.pid)
                self.output = os.dup(pipe.fileno())
        except OSError:
            # No descriptors left: a process that cannot be watched must not run.
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            os.close(self.ready_pipe)
            if self._pidfd >= 0:
                os.close(self._pidfd)
            raise
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._pidfd, self._on_exit)

    def terminate(self) -> None:
        """Send SIGTERM to the process only; it must stop the processes that it started."""
        if not self.exited.done():
            # By pidfd: the number cannot have passed to another process.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    def kill_group(self) -> None:
        """Kill the process and all that is left of its group."""
        if self.exited.done():
            # Its number may belong to another process by now, and its group was killed with it.
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _on_exit(self) -> None:
        # The rest of its group is killed before its number is released, so that the number
        # still means this group.
        self.kill_group()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.exited.set_result(self._process.wait())


def how_it_ended(status: int) -> str:
    """Return an exit status in words."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was killed by signal {-status}"
