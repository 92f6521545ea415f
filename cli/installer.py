"""Installs pinned, hash-checked packages into an environment, with uv if available, else with pip.

Standard library only: it runs before any package is installed. cli.environment decides which
packages are needed, and whether they are installed already.
"""

import ast
import os
import re
import selectors
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

# How often to redraw a line on a terminal, and to repeat it without one.
REDRAW_SECONDS = 0.5
REMINDER_SECONDS = 10
# The lines of an installer's output to show when it fails.
LAST_LINES = 30

# Both installers announce a download as `Downloading <name or file> (<size>)`.
DOWNLOAD = re.compile(r"Downloading (?P<what>\S+) \((?P<size>[^)]+)\)")
# Only uv reports that it builds a source package.
BUILD = re.compile(r"Building (?P<what>\S+==\S+)")
PIN = re.compile(r"^[A-Za-z0-9_.-]+==", re.MULTILINE)

# Sections of `pip config list`; later ones take precedence.
PIP_LEVELS = ("global.", "install.", ":env:.")

# pip's setting: uv's environment variable for the same. uv reads neither pip's files nor its
# variables, and machines behind a proxy or a mirror often configure only pip.
UV_VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "no-index": "UV_NO_INDEX",
}


class InstallError(Exception):
    """The packages could not be installed; the message is for the user."""


def install(
    python: Path, requirements: Path, *, with_dependencies: bool, uv_requirements: Path
) -> None:
    """Install one requirements file into the environment of `python`."""
    arguments = ["--require-hashes", "-r", str(requirements)]
    if not with_dependencies:
        arguments.append("--no-deps")
    total = len(PIN.findall(requirements.read_text(encoding="utf-8")))
    label = f"{requirements.name}: {total} package{'s' if total > 1 else ''} with"
    settings = pip_settings(python)
    uv = find_uv(python, uv_requirements)
    if uv is not None:
        command = [uv, "pip", "install", "--python", str(python), *find_links(settings)]
        with_uv = Progress(f"{label} uv")
        if with_uv.run([*command, *arguments], {**os.environ, **uv_settings(settings)}):
            return
        sys.stderr.write("uv could not install them; trying pip.\n")
    command = [*pip_of(python), "install", "--progress-bar", "off"]
    with_pip = Progress(f"{label} pip")
    if not with_pip.run([*command, *arguments], os.environ):
        raise InstallError(
            f"the packages of {requirements.name} could not be installed (see above)"
        )


def find_uv(python: Path, uv_requirements: Path) -> str | None:
    """Return a uv: the machine's, or the environment's own, installed by pip if missing."""
    own = python.with_name("uv")
    if found := shutil.which("uv"):
        return found
    if not own.exists():
        command = [*pip_of(python), "install", "--progress-bar", "off", "--no-deps"]
        fetch = Progress("uv, the installer")
        fetch.run([*command, "--require-hashes", "-r", str(uv_requirements)], os.environ)
    return str(own) if own.exists() else None


def pip_of(python: Path) -> list[str]:
    """Return the pip for an environment: its own, or that of the Python that created it."""
    if any(python.parents[1].glob("lib/python*/site-packages/pip")):
        return [str(python), "-m", "pip"]
    base = getattr(sys, "_base_executable", sys.executable)
    return [base, "-m", "pip", "--python", str(python)]


def pip_settings(python: Path) -> dict[str, str]:
    """Return the settings of `pip install`, from its files and its variables."""
    listed = subprocess.run(
        [*pip_of(python), "config", "list"], capture_output=True, text=True, check=False
    )
    settings: dict[str, str] = {}
    for level in PIP_LEVELS:
        for line in listed.stdout.splitlines():
            name, equals, value = line.removeprefix(level).partition("=")
            if equals and line.startswith(level):
                settings[name] = str(ast.literal_eval(value))
    return settings


def uv_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Translate pip's settings for uv; keep the user's own settings of uv."""
    return {
        variable: settings[name]
        for name, variable in UV_VARIABLES.items()
        if name in settings and variable not in os.environ
    }


def find_links(settings: Mapping[str, str]) -> list[str]:
    """Return pip's find-links as arguments for uv, which fails if a folder is missing."""
    places = settings.get("find-links", "").split()
    return [
        argument
        for place in places
        if "://" in place or Path(place).is_dir()
        for argument in ("--find-links", place)
    ]


class Progress:
    """Shows the progress of an installer: the package, its size and the elapsed time."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()
        self._last_shown = self._started
        self._current = "resolving packages"
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._is_terminal = sys.stderr.isatty()

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Run the installer; return whether it succeeded, and show the end of its output if not."""
        self._show()
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
        ) as process:
            assert process.stdout is not None
            self._follow(process.stdout.fileno())
        if process.returncode == 0:
            self._current = "installed"
            self._show(last=True)
            return True
        self._current = "failed"
        self._show(last=True)
        sys.stderr.write("".join(f"  {line}\n" for line in self._last_lines))
        return False

    def _follow(self, output: int) -> None:
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                if selector.select(REDRAW_SECONDS):
                    block = os.read(output, 65536)
                    if not block:
                        return
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        self._note(line.decode("utf-8", "replace").rstrip())
                self._remind()

    def _note(self, line: str) -> None:
        self._last_lines.append(line)
        download = DOWNLOAD.search(line)
        if download:
            self._current = f"downloading {download['what']} ({download['size']})"
        elif build := BUILD.search(line):
            self._current = f"building {build['what']}"
        elif line.startswith(("Installing", "Prepared")):
            self._current = "unpacking"
        else:
            return
        self._show()

    def _remind(self) -> None:
        interval = REDRAW_SECONDS if self._is_terminal else REMINDER_SECONDS
        if time.monotonic() - self._last_shown >= interval:
            self._show()

    def _show(self, *, last: bool = False) -> None:
        self._last_shown = time.monotonic()
        elapsed = self._last_shown - self._started
        line = f"  {self._label}: {self._current} [{elapsed:.0f} s]"
        if self._is_terminal:
            # Return to the start of the line, and clear the rest of a longer one.
            line = f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K"
        sys.stderr.write(line if self._is_terminal and not last else line + "\n")
        sys.stderr.flush()
