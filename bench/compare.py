"""`./samsa bench compare REV [ROWS]`: this commit beside another one, in alternated pairs of runs.

Each side is a fresh clone with an environment of its own. A run starts a home of that side, does
all rows in it and stops it; pairs alternate which side is first (ABBA), and the first pair only
warms the machine up. A row fails only if its whole 95 % interval is above its bound: then chance
does not explain it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from bench.broker_targets import ROOT
from bench.compare_rows import DEFAULT, ROWS, Row, Site, cost
from bench.homes import BenchHome
from bench.measure import Cell, Table, machine
from bench.paired import LEAST_PAIRS, MOST_PAIRS, Interval, interval, order
from bench.reports import drawn

PAIRS: Final = 8
# Without a network, an environment is filled from caches in some 20 s.
SETUP_SECONDS: Final = 600.0
# Lift the limits of callers, or the benchmark would measure these.
ENVIRONMENT: Final = {
    "SAMSA_REST_REQUESTS_PER_S": "0",
    "SAMSA_REST_RECORDS_PER_S": "0",
    "SAMSA_REST_BYTES_PER_S": "0",
}
US: Final = 1e6
# Cost of each row, by its name.
Costs = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One version: its revision, as it was named, and a checkout that is ready to run."""

    name: str
    revision: str
    checkout: Path


class SideFailed(Exception):
    """A side cannot be built, started or measured; the message says which and why."""


@click.command(
    epilog="Example: ./samsa bench compare main~20 rest.produce console.topics --pairs 10"
)
@click.argument("rev", required=False)
@click.argument("rows", nargs=-1)
@click.option(
    "--pairs",
    type=click.IntRange(LEAST_PAIRS, MOST_PAIRS),
    default=PAIRS,
    show_default=True,
    help="Pairs that count; one more warms up.",
)
@click.option("--rows", "is_list", is_flag=True, help="List the rows, and what they measure.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write all costs here.")
def compare(
    rev: str | None, rows: tuple[str, ...], pairs: int, *, is_list: bool, json_file: Path | None
) -> None:
    """Compare this commit with REV: the ratio of CPU per unit, with its 95 % interval."""
    console = Console() if sys.stdout.isatty() else Console(width=160)
    if is_list:
        console.print(drawn(rows_table()))
        return
    if rev is None:
        raise click.UsageError("name a revision to compare with: ./samsa bench compare REV")
    chosen = rows_of(rows)
    before, after = revision_of(rev), revision_of("HEAD")
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()), style="dim")
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="samsa-pairs-")))
            sides = [
                clone(folder / "before", name=rev, revision=before),
                clone(folder / "after", name="HEAD", revision=after),
            ]
            measured = list(measure(sides, chosen, pairs, console))
    except SideFailed as failed:
        raise click.ClickException(str(failed)) from failed
    found = {row.name: interval(costs_of(row, measured)) for row in chosen}
    minutes = (time.monotonic() - began) / 60
    console.print(drawn(table_of(chosen, found, measured, f"{rev} ({before[:8]})", minutes)))
    if json_file is not None:
        pairs_of = {row.name: costs_of(row, measured) for row in chosen}
        json_file.write_text(json.dumps({"pairs": pairs_of}, indent=2) + "\n", encoding="utf-8")
    slower = [row.name for row in chosen if found[row.name].is_above(row.bound)]
    if slower:
        raise click.ClickException(f"slower than {rev}, beyond chance: {', '.join(slower)}")


def rows_of(names: Sequence[str]) -> list[Row]:
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        raise click.UsageError(f"{unknown[0]} is no row: take some of {', '.join(ROWS)}")
    return [ROWS[name] for name in names or DEFAULT]


def revision_of(name: str) -> str:
    """Return the commit that a name means in this checkout."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise click.UsageError(f"{name} is no commit of {ROOT}: fetch it, or name another one")
    return found.stdout.strip()


def clone(folder: Path, *, name: str, revision: str) -> Side:
    """Check a revision out and fill its environment, as its first start would do."""
    run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder)], name)
    run(["git", "-C", str(folder), "checkout", "--quiet", revision], name)
    run([str(folder / "samsa"), "--version"], name)
    return Side(name=name, revision=revision, checkout=folder)


def run(command: Sequence[str], side: str) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=SETUP_SECONDS,
        env=environment(),
    )
    if done.returncode != 0:
        end = (done.stdout + done.stderr).strip()[-2_000:]
        raise SideFailed(f"{side}: {' '.join(command)} failed: {end}")


def environment() -> dict[str, str]:
    """Return this process's environment without variables that name its checkout or a home."""
    own = {"PYTHONPYCACHEPREFIX", "PYTHONPATH", "VIRTUAL_ENV", "DATABASE_URL", "REDIS_URL"}
    kept = {name: text for name, text in os.environ.items() if name not in own}
    return {name: text for name, text in kept.items() if not name.startswith("SAMSA_")}


def measure(
    sides: Sequence[Side], rows: Sequence[Row], pairs: int, console: Console
) -> Iterator[tuple[Costs, Costs]]:
    """Run all pairs and yield those that count, each as the costs of both sides."""
    for number, turn in enumerate(order(pairs + 1)):
        costs: dict[int, Costs] = {}
        for side in turn:
            costs[side] = measure_once(sides[side], rows)
        shown = "  ".join(
            f"{row.name} {costs[1][row.name] / costs[0][row.name]:.3f}" for row in rows
        )
        console.print(f"{f'pair {number}' if number else 'warm-up'}: {shown}", style="dim")
        if number:
            yield costs[0], costs[1]


def measure_once(side: Side, rows: Sequence[Row]) -> Costs:
    """Start a home of a side, do every row, and stop it."""
    row = None
    try:
        with running(side) as site:
            found = {}
            for row in rows:
                found[row.name] = cost(row, site)
            return found
    except SideFailed:
        raise
    # Whatever a row raises, the caller has to learn of which side and row.
    except Exception as error:
        where = f"row {row.name}" if row else "its home"
        raise SideFailed(f"{side.name} ({side.revision[:8]}): {where} failed: {error}") from error


@contextmanager
def running(side: Side) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="samsa-bench-") as name:
        home = BenchHome(folder=Path(name, "home"), checkout=side.checkout)
        try:
            home.start(brokers=1, environment={**environment(), **ENVIRONMENT})
            yield Site(home)
        finally:
            home.stop()


def costs_of(row: Row, measured: Sequence[tuple[Costs, Costs]]) -> list[tuple[float, float]]:
    return [(before[row.name], after[row.name]) for before, after in measured]


def table_of(
    rows: Sequence[Row],
    found: Mapping[str, Interval],
    measured: Sequence[tuple[Costs, Costs]],
    before: str,
    minutes: float,
) -> Table:
    lines: list[Sequence[Cell]] = []
    for row in rows:
        one, pairs = found[row.name], costs_of(row, measured)
        middles = [sorted(side)[len(side) // 2] * US for side in zip(*pairs, strict=True)]
        verdict = "SLOWER" if one.is_above(row.bound) else "holds"
        shown = f"{one.ratio:.3f}", f"{one.low:.3f} to {one.high:.3f}", f"{row.bound:.2f}"
        lines.append((row.name, row.unit, *middles, *shown, verdict))
    return Table(
        title=f"this commit divided by {before}: {len(measured)} pairs",
        columns=("row", "unit", "CPU µs before", "after", "ratio", "95 %", "bound", "verdict"),
        rows=lines,
        notes=(f"{minutes:.0f} minutes; Student's t of the logarithms of {len(measured)} ratios",),
    )


def rows_table() -> Table:
    return Table(
        title="rows; the first six are the default",
        columns=("row", "CPU of", "per", "bound"),
        rows=[
            (row.name, " and ".join(row.processes), row.unit, f"{row.bound:.2f}")
            for row in ROWS.values()
        ],
    )
