"""What the agent writes for its operator."""

import json
import logging

import pytest

from tests.database import project_home
from tests.fakes.clock import ManualClock

project_home()

from brokers.controlplane.logs import QUIET_S, Forwarder, Log  # noqa: E402


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_an_event_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    Log(ManualClock(now_ms=1_700_000_000_123)).info("agent.started", version=7, path=object)

    (line,) = lines(capsys)
    assert line["timestamp"] == "2023-11-14T22:13:20.123Z"
    assert (line["level"], line["event"], line["version"]) == ("info", "agent.started", 7)


def test_the_same_words_are_said_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    log = Log(clock)

    for _ in range(3):
        log.limited("link.refused", error="one")
    log.limited("link.refused", error="another")
    clock.advance(int(1000 * QUIET_S))
    log.limited("link.refused", error="one")

    assert [line["error"] for line in lines(capsys)] == ["one", "another", "one"]


def test_what_libraries_say_has_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.LogRecord("pool", logging.WARNING, "f", 1, "lost %s", ("it",), None)

    Forwarder().emit(record)

    (line,) = lines(capsys)
    assert (line["event"], line["logger"], line["message"]) == ("library.warned", "pool", "lost it")
