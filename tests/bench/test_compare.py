"""Two versions compared: what is measured, and the sentence of a side that fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench import compare
from bench.compare import Side, SideFailed
from bench.compare_rows import DEFAULT, ROWS, Row

SIDES = [
    Side(name=name, revision=f"{name}-1234567", checkout=Path(name)) for name in ("old", "new")
]


def row(name: str, **values: Any) -> Row:
    return Row(
        **{"name": name, "unit": "call", "processes": ("web",), "run": lambda _: 1, **values}
    )


def costs(monkeypatch: pytest.MonkeyPatch, slower: float) -> None:
    """Let each run cost what its side and its turn say, without a home."""
    turns = iter(range(1000))

    def measure_once(side: Side, rows: list[Row]) -> dict[str, float]:
        load = 1 + next(turns) % 5 / 10_000
        return {one.name: load * (slower if side.checkout.name == "after" else 1.0) for one in rows}

    monkeypatch.setattr(compare, "measure_once", measure_once)
    monkeypatch.setattr(
        compare,
        "clone",
        lambda folder, name, revision: Side(name=name, revision=revision, checkout=folder),
    )


@pytest.mark.parametrize(("slower", "code"), [(1.02, 0), (1.04, 1)])
def test_a_row_that_is_slower_beyond_chance_fails(
    monkeypatch: pytest.MonkeyPatch, slower: float, code: int
) -> None:
    costs(monkeypatch, slower)

    result = CliRunner().invoke(compare.compare, ["HEAD", "rest.produce", "sockets.read"])

    assert result.exit_code == code, result.output
    # A socket's row may be slower by more.
    assert "sockets.read" not in result.output.partition("Error:")[2]
    assert ("beyond chance: rest.produce" in result.output) is bool(code)


def test_the_warm_up_is_dropped_and_pairs_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def measure_once(side: Side, _rows: list[Row]) -> dict[str, float]:
        seen.append(side.name)
        return {"a": float(len(seen))}

    monkeypatch.setattr(compare, "measure_once", measure_once)

    found = list(compare.measure(SIDES, [row("a")], 2, Console(quiet=True)))

    assert seen == ["old", "new", "new", "old", "old", "new"]
    assert found == [({"a": 4.0}, {"a": 3.0}), ({"a": 5.0}, {"a": 6.0})]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a revision"),
        (["none-such"], "none-such is no commit"),
        (["HEAD", "none.such"], "none.such is no row: take some of broker.produce"),
        (["HEAD", "--pairs", "1"], "1 is not in the range"),
    ],
)
def test_invalid_arguments_are_refused(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(compare.compare, arguments)

    assert result.exit_code == 2
    assert sentence in result.output


def test_a_row_that_fails_names_its_side(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def running(_side: Side) -> Iterator[Any]:
        yield None

    def fail(_row: Row, _site: Any) -> float:
        raise TimeoutError("no answer")

    monkeypatch.setattr(compare, "running", running)
    monkeypatch.setattr(compare, "cost", fail)

    with pytest.raises(SideFailed, match=r"^old \(old-1234\): row a failed: no answer$"):
        compare.measure_once(SIDES[0], [row("a")])


def test_a_side_that_cannot_be_built_says_what_its_command_said(tmp_path: Path) -> None:
    with pytest.raises(SideFailed, match=r"none: git -C .* failed: .*not a git repository"):
        compare.run(["git", "-C", str(tmp_path), "status"], "none")


def test_rows_are_listed_with_their_bounds() -> None:
    result = CliRunner().invoke(compare.compare, ["--rows"])

    assert result.exit_code == 0
    assert all(name in result.output for name in ROWS)
    assert {ROWS[name].bound for name in DEFAULT if name.startswith("sockets")} == {1.05}
