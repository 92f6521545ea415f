"""Installs extras that the console requests: one at a time, each in its own process.

The console checks the right to install; this module accepts a closed table of names. The console
writes the name into a file, which is removed before the installer runs: a failed or interrupted
install runs again only on a new request. A second file holds the progress, and exists while this
home can install.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from brokers.clock import Clock
from brokers.supervisor.child import Child, how_it_ended
from brokers.supervisor.components import ROOT
from brokers.supervisor.front import Journal
from brokers.supervisor.home import Home
from brokers.supervisor.output import LogFile, Pump

# The names of `./samsa extras`.
NAMES: Final = frozenset({"parquet", "spark"})
COMMAND: Final = (
    *(sys.executable, "-P", "-m", "cli"),
    *("extras", "install", "--without-classes"),
)
# Runs after an installation, with which connectors work already.
AFTERWARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "spark": (sys.executable, "-P", "-m", "cli", "spark", "store-classes")
}
# How soon a requested installation begins.
LOOK_SECONDS: Final = 0.5
# Longer than any name: the console did not write a longer one.
MAX_NAME_BYTES: Final = 64
# Variables that an installer gets: paths of programs, user files and certificates, and package
# indexes. No database address is among them.
VARIABLES: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_*", "PYTHON*", "LD_LIBRARY_PATH"),
    *("PIP_*", "UV_*", "XDG_*", "JAVA_HOME", "SSL_CERT_*", "REQUESTS_CA_BUNDLE"),
    *("*_proxy", "*_PROXY"),
)
# A password in the URL of a package index.
USER_IN_URL: Final = re.compile(r"//[^/@\s]*@")
READY: Final = "ready"
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
CUT_OFF: Final = "the home stopped before it was installed: request it again"


class Extras:
    """See the module. Belongs to the supervisor's loop."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        journal: Journal,
        environment: Mapping[str, str],
        *,
        command: tuple[str, ...] = COMMAND,
        afterwards: Mapping[str, tuple[str, ...]] = AFTERWARDS,
    ) -> None:
        self._home = home
        self._clock = clock
        self._journal = journal
        self._environment = {
            name: value
            for name, value in environment.items()
            if any(fnmatchcase(name, pattern) for pattern in VARIABLES)
        }
        self._command = command
        self._afterwards = afterwards
        self._following: asyncio.Task[None] | None = None
        # Extras for which something is still to be done.
        self._unfinished: set[str] = set()
        self._name = ""
        self._began_ms = 0

    async def run(self) -> None:
        """Install requested extras until cancelled."""
        self._begin()
        try:
            while True:
                name = self._asked()
                if name is None:
                    await asyncio.sleep(LOOK_SECONDS)
                elif name in NAMES:
                    # An installation does not wait for it; it begins again afterwards.
                    await self._stop_following()
                    if await self._install(name):
                        self._unfinished |= self._afterwards.keys() & {name}
                    self._following = asyncio.create_task(self._follow())
                else:
                    self._journal.note("extra.refused", "warning", name=name)
        finally:
            await self._stop_following()

    async def _follow(self) -> None:
        """Do what comes after the installations, which work without it."""
        for name in sorted(self._unfinished):
            why = await self._run(self._afterwards[name], lambda _line: None)
            level = "warning" if why else "info"
            self._journal.note("extra.completed", level, name=name, reason=safe(why))
            self._unfinished.discard(name)

    async def _stop_following(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _begin(self) -> None:
        """Report that this home can install, and how the last install of an earlier run ended."""
        before: Mapping[str, object] = {}
        with suppress(OSError, ValueError):
            before = json.loads(self._home.extras_file.read_text(encoding="utf-8"))
        if before.get("state") == RUNNING:
            self._name = str(before.get("name"))
            self._tell(FAILED, CUT_OFF)
        elif before.get("state") not in {DONE, FAILED}:
            self._tell(READY, "")

    def _asked(self) -> str | None:
        """Remove the request for an extra and return its name; None if there is no request."""
        mark = self._home.extras_mark
        try:
            with mark.open("rb") as file:
                name = file.read(MAX_NAME_BYTES).decode("utf-8", "replace").strip()
            mark.unlink()
        except OSError:
            return None
        return name

    async def _install(self, name: str) -> bool:
        """Install an extra, report its progress, and return whether it is installed."""
        self._name, self._began_ms = name, self._clock.now_ms()
        self._journal.note("extra.began", "info", name=name)
        self._tell(RUNNING, "starting")
        why = await self._run((*self._command, name), lambda line: self._tell(RUNNING, line))
        self._end(FAILED if why else DONE, why)
        return not why

    async def _run(self, command: tuple[str, ...], tell: Callable[[str], None]) -> str:
        """Run a program of an installation; return why it failed, or an empty text."""
        log = LogFile(self._home.log_file("extras"))
        try:
            child = Child(command, self._environment, folder=ROOT)
        except OSError as error:
            return f"it could not be started: {error.strerror}"
        pump = Pump(child.output, log, tell, now_ms=self._clock.now_ms)
        try:
            # A cancellation must not end the wait for the process.
            status = await asyncio.shield(child.exited)
            await pump.ended
        finally:
            # A stopping home does not wait for a download; it reports the request as failed.
            child.kill_group()
            await child.exited
            os.close(child.ready_pipe)
            pump.close()
            log.close()
        if status == 0:
            return ""
        words = " / ".join(pump.last_lines)
        return f"{how_it_ended(status)}: {words}" if words else how_it_ended(status)

    def _end(self, state: str, line: str) -> None:
        level = "info" if state == DONE else "error"
        self._journal.note(f"extra.{state}", level, name=self._name, reason=safe(line))
        self._tell(state, line)

    def _tell(self, state: str, line: str) -> None:
        told = {
            "name": self._name,
            "state": state,
            "line": safe(line),
            "began_ms": self._began_ms,
            "told_ms": self._clock.now_ms(),
        }
        file = self._home.extras_file
        temporary = file.with_suffix(".tmp")
        # A full disk: the installer continues, or fails on its own.
        with suppress(OSError):
            temporary.write_text(f"{json.dumps(told)}\n", encoding="utf-8")
            temporary.replace(file)


def safe(line: str) -> str:
    """Return a line of an installer with passwords masked."""
    return USER_IN_URL.sub("//…@", line)
