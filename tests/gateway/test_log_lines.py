"""Every line of a process's log says when it was written."""

import logging

from gateway.log_lines import FORMAT, Lines


def test_line_begins_with_its_time_in_utc() -> None:
    record = logging.LogRecord("tasks", logging.INFO, "p", 1, "task.said task=%s", ("a",), None)
    record.created, record.msecs = 1_700_000_000.042, 42.0

    assert Lines(FORMAT).format(record) == "2023-11-14T22:13:20.042Z INFO tasks task.said task=a"
