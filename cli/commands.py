"""The verbs of `./samsa`. A verb appears here when it works."""

import click

from cli.bench import bench
from cli.test import test


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version="0.1.0.dev0", prog_name="samsa")
def main() -> None:
    """Samsa, a streaming platform that speaks Kafka's protocol."""


main.add_command(test)
main.add_command(bench)
