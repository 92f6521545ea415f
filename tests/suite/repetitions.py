"""How often each test repeats at the desk, in CI and in a long run: docs/repetitions.md.

Run as a program it writes that page, from the calls of `tests.scale.count` with plain numbers.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.tidy.project import ROOT, Source, sources

PAGE: Final = ROOT / "docs" / "repetitions.md"
HEAD: Final = """# Repetitions

What proves by repetition has three counts.
The desk and CI run a short form from a fixed seed.
It meets every kind of step, and fails on the broken builds that prove the test.
The campaign that looks for what nobody thought of is `./samsa test --long`.
`python -m tests.suite.repetitions` writes this page, and a test compares it.

| file below `tests/` | what | desk | CI | long |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    path: str
    # A constant, or the function that repeats.
    what: str
    counts: tuple[int, int, int]


def rows(source: Source) -> Iterator[Row]:
    if any(name == "tests.scale.count" for _, name in source.imports()):
        yield from rows_in(source.path.as_posix(), source.tree, "the module")


def rows_in(path: str, node: ast.AST, what: str) -> Iterator[Row]:
    for child in ast.iter_child_nodes(node):
        name = what
        match child:
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found):
                name = found
            case ast.Assign(targets=[ast.Name(id=found)]) if found.isupper():
                name = found
            case ast.Call(func=ast.Name(id="count")) if counts := counts_of(child):
                yield Row(path=path, what=name, counts=counts)
        yield from rows_in(path, child, name)


def counts_of(call: ast.Call) -> tuple[int, int, int] | None:
    """Return the three counts of a call; None where one is no plain number."""
    given = [*call.args, *(word.value for word in call.keywords)]
    numbers = [each.value for each in given if isinstance(each, ast.Constant)]
    if len(numbers) < len(given):
        return None
    desk, ci, *long = (number for number in numbers if isinstance(number, int))
    return desk, ci, long[0] if long else ci


def page(tests: Iterable[Source]) -> str:
    lines = []
    for row in (row for source in tests for row in rows(source)):
        cells = " | ".join(f"{number:,}" for number in row.counts)
        lines.append(f"| `{row.path.removeprefix('tests/')}` | `{row.what}` | {cells} |\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(sources()), encoding="utf-8")
