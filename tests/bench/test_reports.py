"""Figures are written alike, whatever their size."""

import json
from datetime import UTC, datetime

import pytest

from bench.measure import Cell, Table
from bench.reports import as_json, drawn, shown

TABLE = Table(title="speed", columns=("message", "µs"), rows=[("fetch", 1.5)], notes=("warm",))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("fetch", "fetch"),
        (16384, "16,384"),
        (0.25, "0.250"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (1234.5, "1,234"),
    ],
)
def test_a_figure_has_three_significant_digits(value: Cell, text: str) -> None:
    assert shown(value) == text


def test_a_table_is_drawn_with_its_columns() -> None:
    drawing = drawn(TABLE)

    assert [column.header for column in drawing.columns] == ["message", "µs"]
    assert drawing.row_count == 1


def test_json_holds_figures_machine_and_command() -> None:
    report = json.loads(as_json({"codec": [TABLE]}, datetime(2026, 1, 2, tzinfo=UTC)))

    assert report["command"] == "./samsa bench codec"
    assert report["started"] == "2026-01-02T00:00:00+00:00"
    assert report["suites"]["codec"][0]["rows"] == [["fetch", 1.5]]
    assert "cpu" in report["machine"]
