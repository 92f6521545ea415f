"""What is read of connectors is what its reader may see."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connections

from connectors import selectors
from connectors.database import CONNECT
from connectors.runtime.record_parts import marked
from gateway.access.grants import FULL_ADMIN, Grant, Rights
from gateway.access.operations import Kind, Operation
from tests.builders import connectors as rows

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
ALL = Rights([FULL_ADMIN])
ORDERS = Rights([Grant(operation=Operation.READ_PAYLOADS, kind=Kind.TOPIC, pattern="orders")])


def lines(reader: Rights) -> list[str]:
    return [line.text for line in selectors.log_lines(C, "a", reader=reader)]


def test_log_lines_and_reasons_hide_what_repeats_records() -> None:
    part = marked("TOPSECRET", ["orders"])
    row = rows.connector(C, "a")
    rows.task(row, figures=rows.retrying(f"no answer to {part}") | rows.losing())
    rows.line(row, f"failed for {part}", level="ERROR")

    [nobody] = selectors.statuses(C, reader=Rights())
    [reader] = selectors.statuses(C, reader=ORDERS)

    assert lines(ORDERS) == ["failed for TOPSECRET"]
    assert reader.tasks[0].retrying is not None
    assert reader.tasks[0].retrying.reason == "no answer to TOPSECRET"
    assert "TOPSECRET" not in f"{lines(Rights())}{nobody}"


def test_texts_of_an_earlier_release_are_for_readers_of_all_topics() -> None:
    row = rows.connector(C, "a")
    rows.task(row, state="FAILED", trace="Value (TOPSECRET-0) was out of range")
    rows.line(row, "Value (TOPSECRET-0) was out of range", level="ERROR")
    rows.line(row, "begins at 0")

    migration = import_module("connectors.migrations.0010_marks_of_earlier_texts")
    migration.mark(apps, SimpleNamespace(connection=connections[CONNECT]))

    assert lines(ALL) == ["Value (TOPSECRET-0) was out of range", "begins at 0"]
    assert "TOPSECRET" in selectors.status(C, "a", reader=ALL).tasks[0].trace
    assert lines(ORDERS)[1] == "begins at 0"
    assert "TOPSECRET" not in f"{lines(ORDERS)}{selectors.status(C, 'a', reader=ORDERS).tasks}"
