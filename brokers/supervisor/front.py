"""Prints messages to the user of `./samsa up`, and writes the supervisor's own log.

In the foreground, lines go to the terminal; a detached start sends the same lines as JSON to the
command that waits for it, only until all is healthy.
"""

import json
import os
import select
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from brokers.clock import Clock
from brokers.supervisor.output import LogFile

STDOUT: Final = 1
# A pipe that is reported as writable accepts this much without blocking (PIPE_BUF).
MAX_WRITE_BYTES: Final = 4096
# How long to wait to finish a line: a line that is cut also spoils the next one.
FINISH_LINE_MS: Final = 100


class Front(Protocol):
    def say(self, line: str) -> None:
        """Show one line."""
        ...

    def finish(self, lines: Sequence[str], *, complaint: str = "") -> None:
        """Show that the start is over: all is healthy, or a message says what is not."""
        ...


def write_if_ready(text: str) -> None:
    """Write to the terminal unless that would block.

    A paused terminal must not stop the loop: the pipes of all processes would fill up, and the
    processes would block.
    """
    poll = select.poll()
    poll.register(STDOUT, select.POLLOUT)
    rest = text.encode("utf-8", "replace")
    patience_ms = 0
    # The reader may be gone; the processes continue.
    with suppress(OSError):
        while rest and any(event & select.POLLOUT for _, event in poll.poll(patience_ms)):
            rest = rest[os.write(STDOUT, rest[:MAX_WRITE_BYTES]) :]
            patience_ms = FINISH_LINE_MS


class Terminal:
    """The foreground: everything is shown as it happens, for as long as it runs."""

    def say(self, line: str) -> None:
        write_if_ready(f"{line}\n")

    def finish(self, lines: Sequence[str], *, complaint: str = "") -> None:
        write_if_ready("".join(f"{line}\n" for line in ("", *lines, "")))
        if complaint:
            self.say(complaint)


class Waiting:
    """A detached start: lines of JSON for the command that waits, then silence."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._is_over = False

    def say(self, line: str) -> None:
        self._tell({"say": line})

    def finish(self, lines: Sequence[str], *, complaint: str = "") -> None:
        self._tell({"started": list(lines), "complaint": complaint})
        self._is_over = True
        # From here on only a crash of the supervisor itself writes here; its traceback goes to
        # its log. Replacing the descriptors closes the pipe, which ends the waiting command.
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            log = os.open(self._log, flags, 0o640)
            os.dup2(log, STDOUT)
            os.dup2(log, 2)
            os.close(log)

    def _tell(self, message: dict[str, Any]) -> None:
        if not self._is_over:
            write_if_ready(f"{json.dumps(message)}\n")


class Journal:
    """The supervisor's own log: one line of JSON per event, like the logs of brokers."""

    def __init__(self, log: LogFile, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def note(self, event: str, level: str, **keys: object) -> None:
        entry = {"event": event, "level": level, "timestamp_ms": self._clock.now_ms(), **keys}
        self._log.write(f"{json.dumps(entry, default=str)}\n".encode())

    def close(self) -> None:
        self._log.close()
