"""`python -m bench [SUITE] [--json FILE]`: runs suites and prints their tables."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench.measure import Table, machine
from bench.reports import as_json, drawn
from bench.suites import SUITES, load


@click.command(epilog="Suites: " + "; ".join(f"{name} ({what})" for name, what in SUITES.items()))
@click.argument("suite", type=click.Choice(list(SUITES)), required=False)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write figures here.")
@click.option("--peer", metavar="HOST:PORT", help="Run the suite broker against this one, too.")
def main(suite: str | None, json_file: Path | None, peer: str | None) -> None:
    """Run one SUITE, or all of them."""
    if peer is not None and suite != "broker":
        raise click.UsageError("--peer belongs to the suite broker: ./samsa bench broker --peer …")
    # A file or a pipe has no width of its own: give the widest table room.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    started = datetime.now(UTC)
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()), style="dim")
    results: dict[str, list[Table]] = {}
    for name in [suite] if suite else list(SUITES):
        results[name] = []
        for table in load(name).run(**({} if peer is None else {"peer": peer})):
            results[name].append(table)
            console.print(drawn(table))
            console.print("".join(f"  {note}\n" for note in table.notes), style="dim", end="")
    if json_file is not None:
        json_file.write_text(as_json(results, started), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(prog_name="./samsa bench"))
