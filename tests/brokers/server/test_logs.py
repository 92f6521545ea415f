"""Lines for the operator: JSON, few of a kind, with the time of the clock."""

import json
from typing import Any

from brokers.server.logs import MAX_LINES_OF_A_KIND, MAX_VALUE_CHARS, Log
from tests.fakes.clock import ManualClock


def log_and_lines(clock: ManualClock | None = None) -> tuple[Log, list[dict[str, Any]]]:
    lines: list[dict[str, Any]] = []
    log = Log(
        clock or ManualClock(), write=lambda line: lines.append(json.loads(line)), component="x"
    )
    return log, lines


def test_a_line_has_its_level_its_event_and_its_keys() -> None:
    log, lines = log_and_lines()

    log.info("segment.rolled", topic="orders", offset=5, error=ValueError("no"))

    assert lines == [
        {
            "timestamp": "2023-11-14T22:13:20.000Z",
            "level": "info",
            "event": "segment.rolled",
            "component": "x",
            "topic": "orders",
            "offset": 5,
            "error": "no",
        }
    ]


def test_a_long_value_is_cut() -> None:
    log, lines = log_and_lines()

    log.error("odd", value="x" * 100_000)

    assert len(lines[0]["value"]) == MAX_VALUE_CHARS + 1


def test_a_flood_of_one_kind_leaves_other_kinds_alone_and_is_counted() -> None:
    clock = ManualClock()
    log, lines = log_and_lines(clock)

    for _ in range(100):
        log.limited("connection.closed", "idle")
    log.limited("connection.closed", "bad bytes")

    assert len(lines) == MAX_LINES_OF_A_KIND + 1

    clock.advance(60_000)
    log.limited("connection.closed", "idle")
    assert lines[-1]["held_back"] == 100 - MAX_LINES_OF_A_KIND


def failing() -> None:
    raise ZeroDivisionError("odd")


def test_a_bug_is_told_with_its_place() -> None:
    log, lines = log_and_lines()

    for _ in range(20):
        try:
            failing()
        except ZeroDivisionError as error:
            log.bug("handler.failed", error, api="Fetch")

    assert len(lines) == MAX_LINES_OF_A_KIND
    assert "test_logs.py" in lines[0]["exception"]
    assert lines[0]["api"] == "Fetch"
