"""`python -m bench [SUITE] [--json FILE]`: runs suites and prints their tables.

`python -m bench compare REV [ROWS]` compares two versions instead.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from bench.compare import compare
from bench.measure import NoPeer, Table, Unmet, machine
from bench.reports import as_json, drawn
from bench.suites import KAFKA, LONG, OPTIONS, SUITES, load


@click.command(
    epilog="Example: ./samsa bench codec --json figures.json\n\nTo compare two commits: ./samsa"
    " bench compare --help\n\nSuites: "
    + "; ".join(f"{name} ({what})" for name, what in SUITES.items())
)
@click.argument("suite", type=click.Choice(list(SUITES)), required=False)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write figures here.")
@click.option(
    "--peer",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=KAFKA,
    help="Run broker or groups against this one, too; broker without an address: a real Kafka.",
)
@click.option(
    "--minutes",
    type=click.IntRange(min=1),
    help="How long scale lets clients churn, soak waits, verdicts watches.",
)
@click.option("--screenshots", metavar="DIR", help="Have console take pictures of its pages.")
@click.option("--postgres", metavar="URL", help="Run controlplane on this database, too.")
def main(suite: str | None, json_file: Path | None, **options_given: str | int | None) -> None:
    """Run one SUITE, or all that are short."""
    options = given(options_given, suite)
    # A file or a pipe has no width: use one that the widest table needs, which compares with a
    # peer.
    console = Console() if sys.stdout.isatty() else Console(width=240)
    started = datetime.now(UTC)
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()), style="dim")
    results: dict[str, list[Table]] = {}
    unmet: list[str] = []
    for name in [suite] if suite else [name for name in SUITES if name not in LONG]:
        results[name] = []
        try:
            for table in load(name).run(**options):
                results[name].append(table)
                console.print(drawn(table))
                console.print("".join(f"  {note}\n" for note in table.notes), style="dim", end="")
        except NoPeer as reason:
            raise click.ClickException(str(reason)) from reason
        except Unmet as shown:
            unmet.append(f"{name}: {shown}")
    if json_file is not None:
        json_file.write_text(as_json(results, started), encoding="utf-8")
    if unmet:
        raise click.ClickException("; ".join(unmet))


def given(options: Mapping[str, str | int | None], suite: str | None) -> dict[str, str | int]:
    """The options that were given, if they are the suite's."""
    found = {name: value for name, value in options.items() if value is not None}
    for name in found:
        if suite is None or OPTIONS.get(suite) != name:
            owners = " and ".join(owner for owner, option in OPTIONS.items() if option == name)
            raise click.UsageError(f"--{name} belongs to {owners}: ./samsa bench SUITE --{name} …")
    if suite != "broker" and found.get("peer") == KAFKA:
        raise click.UsageError("--peer without an address belongs to broker")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == [compare.name]:
        sys.exit(compare(sys.argv[2:], prog_name="./samsa bench compare"))
    sys.exit(main(prog_name="./samsa bench"))
