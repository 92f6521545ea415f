"""`./samsa logs`: shows the logs of a home's processes, the newest lines or as they are written."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

import click

from brokers.supervisor.home import Home
from brokers.supervisor.output import readable, structured
from cli.home import HOME_OPTION

DEFAULT_LINES: Final = 100
# The exit code of all commands for a missing object.
EXIT_NOT_FOUND: Final = 3
# The poll interval of a followed file: a tenth of a second appears immediate.
FOLLOW_SECONDS: Final = 0.1


class NoSuchLog(click.ClickException):
    """The home has no component of this name."""

    exit_code = EXIT_NOT_FOUND


@click.command(epilog="Example: ./samsa logs broker-1 --follow")
@HOME_OPTION
@click.argument("component", required=False)
@click.option("-f", "--follow", is_flag=True, help="Follow the log.")
@click.option(
    "-n", "--lines", default=DEFAULT_LINES, show_default=True, help="Number of lines to show."
)
@click.option("--raw", is_flag=True, help="Print the lines as they were written.")
def logs(*, home: Path, component: str | None, follow: bool, lines: int, raw: bool) -> None:
    """Show the log of a COMPONENT, or of all components.

    A COMPONENT is supervisor, agent, broker-1 (and so on) or web.
    """
    place = Home(home)
    there = sorted(path.stem for path in place.logs.glob("*.log"))
    if not there:
        raise click.ClickException(
            f"{home} has no logs: start it with `./samsa up`, or name another home with --home"
        )
    if component is not None and component not in there:
        raise NoSuchLog(f"{component} has no log in {home}; choose from {', '.join(there)}")
    chosen = [component] if component else there
    tails = [Tail(name, place.log_file(name), lines) for name in chosen]
    try:
        show(tails, is_raw=raw, has_names=component is None)
        while follow:
            time.sleep(FOLLOW_SECONDS)
            show(tails, is_raw=raw, has_names=component is None)
    except KeyboardInterrupt:
        click.echo()
    finally:
        for tail in tails:
            tail.close()


class Tail:
    """A log file, read from near its end on, across its rotations."""

    def __init__(self, name: str, path: Path, lines: int) -> None:
        self.name = name
        self._path = path
        self._old = last_lines(path, lines)
        self._file: TextIO | None = None

    def take(self) -> Iterator[str]:
        """Return the lines since the last call."""
        yield from self._old
        self._old = []
        if self._file is None:
            self._open()
        while self._file is not None:
            yield from self._whole_lines(self._file)
            if not self._is_rotated(self._file):
                return
            self._open(from_start=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, *, from_start: bool = False) -> None:
        self.close()
        with suppress(FileNotFoundError):
            self._file = self._path.open(encoding="utf-8", errors="replace")
            if not from_start:
                self._file.seek(0, os.SEEK_END)

    def _whole_lines(self, file: TextIO) -> Iterator[str]:
        while True:
            position = file.tell()
            line = file.readline()
            if not line.endswith("\n"):
                # The rest of the line is not written yet.
                file.seek(position)
                return
            yield line.rstrip("\n")

    def _is_rotated(self, file: TextIO) -> bool:
        with suppress(FileNotFoundError):
            return self._path.stat().st_ino != os.fstat(file.fileno()).st_ino
        return False


def last_lines(path: Path, count: int) -> list[str]:
    """Return the newest lines of a log, from its older file too if the current one is short."""
    found: list[str] = []
    for file in (path, path.with_name(f"{path.name}.1")):
        if len(found) < count and file.exists():
            text = file.read_text(encoding="utf-8", errors="replace")
            found = [*text.splitlines()[-(count - len(found)) :], *found]
    return found


def show(tails: Sequence[Tail], *, is_raw: bool, has_names: bool) -> None:
    """Print new lines in the order of their times."""
    dated: list[tuple[str, str]] = []
    width = max(len(tail.name) for tail in tails)
    for tail in tails:
        moment = ""
        for line in tail.take():
            entry = None if is_raw and len(tails) == 1 else structured(line)
            # A line without a time belongs to the one before it.
            moment = time_of(entry) if entry else moment
            text = line if is_raw or entry is None else f"{moment} {readable(entry)}"
            dated.append((moment, f"{tail.name:<{width}} | {text}" if has_names else text))
    if len(tails) > 1:
        dated.sort(key=lambda pair: pair[0])
    for _, text in dated:
        click.echo(text)


def time_of(entry: Mapping[str, Any]) -> str:
    """Return the time of a line in UTC, in a form that sorts."""
    if isinstance(milliseconds := entry.get("timestamp_ms"), int):
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"
    return str(entry.get("timestamp", ""))
