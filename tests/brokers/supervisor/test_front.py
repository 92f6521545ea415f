"""A reader who pauses or goes away costs lines, never the loop."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.supervisor import front
from brokers.supervisor.output import LogFile
from tests.fakes.clock import ManualClock


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The reading end of what stands for the terminal."""
    reading, writing = os.pipe()
    monkeypatch.setattr(front, "STDOUT", writing)
    yield reading
    os.close(writing)


def test_lines_are_shown_as_they_come(pipe: int) -> None:
    terminal = front.Terminal()

    terminal.say("one")
    terminal.finish(["two"])

    assert os.read(pipe, 100) == b"one\n\ntwo\n\n"


def test_a_line_longer_than_one_write_arrives_whole(pipe: int) -> None:
    line = "wide \N{GRINNING FACE} " * 1000

    front.Terminal().say(line)

    assert os.read(pipe, 10**6).decode() == f"{line}\n"


def test_a_terminal_that_is_paused_loses_lines(pipe: int) -> None:
    terminal = front.Terminal()

    for _ in range(200):
        terminal.say("x" * 1000)

    assert len(os.read(pipe, 10**6)) < 100_000
    terminal.say("again")
    assert os.read(pipe, 10**6) == b"again\n"


def test_a_terminal_that_is_gone_stops_nothing(pipe: int) -> None:
    os.close(pipe)

    front.Terminal().say("nobody reads this")


def test_the_journal_keeps_events_with_their_time(tmp_path: Path) -> None:
    journal = front.Journal(LogFile(tmp_path / "s.log"), ManualClock(1_700_000_000_000))

    journal.note("component.ready", "info", component="web")
    journal.close()

    assert json.loads((tmp_path / "s.log").read_text()) == {
        "event": "component.ready",
        "level": "info",
        "timestamp_ms": 1_700_000_000_000,
        "component": "web",
    }
