"""Lists the verbs of `./samsa`, each as soon as it works.

Each row names the module of a verb, which is imported on use: `./samsa status` must not wait for
the imports of `./samsa test`.
"""

import importlib
from collections.abc import Mapping
from typing import Final

import click

from brokers.release import VERSION

# verb: (the module with a function of this name, its text in `--help`)
VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "up": ("cli.up", "Start brokers, their agent, the console and the gateway."),
    "node": ("cli.up", "Start an agent and brokers that join the cluster of DATABASE_URL."),
    "down": ("cli.down", "Stop all components of the home."),
    "status": ("cli.status", "Show the components of the home; exit 0 only if all are healthy."),
    "logs": ("cli.logs", "Show the log of a COMPONENT, or of all components."),
    "brokers": ("cli.brokers", "Start, stop, restart and hold a broker of the home."),
    "topics": ("cli.topics", "List, create, describe, alter and delete topics."),
    "configs": ("cli.configs", "Describe and alter the configs of topics and brokers."),
    "groups": (
        "cli.groups",
        "List, describe, reset and delete consumer groups, and show their lag.",
    ),
    "produce": (
        "cli.produce",
        "Write records to TOPIC: each VALUE, a file, or each line of standard input.",
    ),
    "consume": (
        "cli.consume",
        "Print the records of TOPIC until Ctrl-C, or until the end or count that an option names.",
    ),
    "connectors": (
        "cli.connectors",
        "List, describe, apply, restart, stop and delete connectors; send dead letters again.",
    ),
    "demo": ("cli.demo", "Create demo topics, and run producers and consumer groups on them."),
    "tokens": ("cli.tokens", "Create, list and revoke access tokens for programs."),
    "extras": (
        "cli.extra_packages",
        "List and install optional packages that some connectors need.",
    ),
    "spark": (
        "cli.spark",
        "Run Spark examples and servers, and package the source for others.",
    ),
    "manage": ("cli.manage", "Run a management command of Django in the home."),
    "test": ("cli.test", "Run the tests, or those that pytest's ARGUMENTS select."),
    "bench": ("cli.bench", "Run the benchmarks: [SUITE] [--json FILE]."),
}


class Verbs(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's form)
        return list(VERBS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), cmd_name)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, sentence) for verb, (_, sentence) in VERBS.items()])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=VERSION, prog_name="samsa")
def main() -> None:
    """Samsa, a streaming platform that speaks Kafka's protocol."""
