"""The machine's Chromium, started without a window; tests speak to it by the DevTools protocol.

It gets a profile of its own and reaches nothing but what a test opens: what a fresh browser does
by itself, from updates to safe browsing, is off. As root it has no sandbox, which refuses root.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from brokers.supervisor.child import tie_to_parent

# Three seconds on an idle machine; CI has other tests beside it.
START_SECONDS: Final = 60
STOP_SECONDS: Final = 10
POLL_SECONDS: Final = 0.05
OPTIONS: Final = (
    "--headless",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--no-first-run",
    "--no-default-browser-check",
    # Containers have 64 MB of /dev/shm, less than a large page needs.
    "--disable-dev-shm-usage",
    # The same letters on every machine, so that pictures can be compared.
    "--font-render-hinting=none",
    "about:blank",
)
LISTENING: Final = re.compile(r"DevTools listening on (ws://\S+)")


@contextmanager
def running_chromium(folder: Path) -> Iterator[str]:
    """Start Chromium with a profile in a folder; yield its address, and stop it at the end."""
    parent = os.getpid()
    said = folder / "chromium.log"
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with said.open("wb") as log:
        process = subprocess.Popen(
            ["chromium", f"--user-data-dir={folder / 'profile'}", *sandbox, *OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=lambda: tie_to_parent(parent),  # noqa: PLW1509 (it calls the kernel only)
        )
    try:
        yield _address(process, said)
    finally:
        _stop(process)


def _address(process: "subprocess.Popen[bytes]", said: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while (found := LISTENING.search(text := said.read_text(errors="replace"))) is None:
        assert time.monotonic() < end, f"Chromium said no address in {START_SECONDS} s:\n{text}"
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"Chromium ended with {process.wait(POLL_SECONDS)}:\n{text}")
    return found[1]


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop the browser with all of its children, which are one process group."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
