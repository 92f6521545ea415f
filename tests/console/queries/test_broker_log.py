"""A line of a log is shown in its parts where it is ours, and else as it is."""

from datetime import UTC, datetime

import pytest

from console.queries.broker_log import row_of


def test_an_entry_is_shown_in_its_parts() -> None:
    line = '{"timestamp_ms": 1000, "level": "warning", "event": "disk.slow", "ms": 7, "why": "x"}'

    row = row_of(line)

    assert row.at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (row.level, row.mark, row.text) == ("warning", "warn", "disk.slow ms=7 why=x")


@pytest.mark.parametrize("line", ["plain", "{", "[1]", '{"a": 1}', "<script>alert(1)</script>", ""])
def test_any_other_line_stays_as_it_is(line: str) -> None:
    row = row_of(line)

    assert (row.at, row.text) == (None, line)


@pytest.mark.parametrize("moment", ["9999999999999999999", '"x"', "null", "true", '"2026-01-01"'])
def test_a_moment_that_is_none_is_left_out(moment: str) -> None:
    assert row_of(f'{{"event": "e", "timestamp": {moment}, "timestamp_ms": {moment}}}').at is None
