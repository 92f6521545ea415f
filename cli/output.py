"""Formats the output of data commands: tables for people, JSON and names for programs.

All forms show the same rows. A pipe gets no colour and no control characters; JSON always has the
same fields in the same order.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import click

GAP: Final = "  "
# The text of a missing value in a table; JSON has null.
NOTHING: Final = "-"


class Form(Enum):
    TABLE = "table"
    JSON = "json"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    is_number: bool = False


def output_option(*forms: Form) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add `--output` to a command; the first form is the default."""

    def chosen(_context: click.Context, _parameter: click.Parameter, value: str) -> Form:
        return Form(value)

    return click.option(
        *("-O", "--output", "form"),
        type=click.Choice([form.value for form in forms]),
        default=forms[0].value,
        show_default=True,
        callback=chosen,
        help="Output format.",
    )


def show_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_names(names: Iterable[str]) -> None:
    for name in names:
        click.echo(name)


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their titles, with each column as wide as needed."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [
        max(len(column.title), *(len(row[index]) for row in cells), 0)
        for index, column in enumerate(columns)
    ]
    say(_line([column.title for column in columns], columns, widths), bold=True)
    for row in cells:
        click.echo(_line(row, columns, widths))


def say(text: str, *, bold: bool = False, to_stderr: bool = False) -> None:
    """Print a line, in bold only on a terminal."""
    stream = sys.stderr if to_stderr else sys.stdout
    is_styled = stream.isatty() and not os.environ.get("NO_COLOR")
    click.echo(click.style(text, bold=True) if bold and is_styled else text, file=stream)


def plain(value: object) -> str:
    """Return a cell's text, without characters that would move the cursor or end the line."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ",".join(plain(item) for item in value) or NOTHING
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    aligned = (
        cell.rjust(width) if column.is_number else cell.ljust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    )
    return GAP.join(aligned).rstrip()
