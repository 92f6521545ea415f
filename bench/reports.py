"""Tables of figures as people read them, and as JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich import box
from rich.table import Table as RichTable

from bench.measure import Cell, Table, machine

# From here on a figure has three digits before the point, and needs none behind it.
WHOLE_FROM = 99.95


def shown(value: Cell) -> str:
    """Write a figure with three significant digits."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= WHOLE_FROM else f"{value:#.3g}"
    return f"{value:,}" if isinstance(value, int) else value


def drawn(table: Table) -> RichTable:
    drawing = RichTable(
        title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for index, column in enumerate(table.columns):
        drawing.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    for row in table.rows:
        drawing.add_row(*(shown(value) for value in row))
    return drawing


def as_json(results: Mapping[str, Sequence[Table]], started: datetime) -> str:
    suites = {
        name: [
            {
                "title": table.title,
                "columns": table.columns,
                "rows": table.rows,
                "notes": table.notes,
            }
            for table in tables
        ]
        for name, tables in results.items()
    }
    report = {
        "machine": machine(),
        "started": started.isoformat(timespec="seconds"),
        "command": "./samsa bench " + " ".join(results),
        "suites": suites,
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"
