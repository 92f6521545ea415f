"""Reads standard input so that Ctrl-C ends the command at any time."""

import os
import selectors
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Only the fact of a write counts, so bytes that do not fit may be dropped.
WAKE_BYTES: Final = 64


class StandardInput:
    """A stream that waits for its next block or for a signal.

    A signal between Python's last check for signals and the system call would leave a plain read
    waiting for input that may never come. Waiting for both descriptors cannot miss it: the
    kernel's handler has written to the second one by then.
    """

    def __init__(self, descriptor: int, woken: int) -> None:
        self._descriptor = descriptor
        self._woken = woken
        # Regular files work with select, but not with epoll.
        self._ready = selectors.SelectSelector()
        for each in (descriptor, woken):
            self._ready.register(each, selectors.EVENT_READ)

    def read1(self, size: int) -> bytes:
        """Return the available bytes, empty at the end; signal handlers run between waits."""
        while True:
            ready = {key.fd for key, _ in self._ready.select()}
            if self._woken in ready:
                os.read(self._woken, WAKE_BYTES)
            elif self._descriptor in ready:
                return os.read(self._descriptor, size)


@contextmanager
def interruptible(descriptor: int) -> Iterator[StandardInput]:
    """Return a stream of a descriptor; only in the main thread, which receives signals."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    former = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield StandardInput(descriptor, woken)
    finally:
        signal.set_wakeup_fd(former)
        os.close(woken)
        os.close(wake)
