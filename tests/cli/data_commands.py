"""Running a data command against a broker of ours, as a script would."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click
from click.testing import CliRunner, Result

from cli.bootstrap import BOOTSTRAP_VARIABLE
from tests.fakes.broker_thread import broker_beside


class Shell:
    """Runs commands with the address of one broker in the environment."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(
        self, command: click.Command, *arguments: str, stdin: bytes = b"", code: int = 0
    ) -> Result:
        """Run a command that ends with an exit code; nothing but that may end it."""
        runner = CliRunner(env={BOOTSTRAP_VARIABLE: self.bootstrap})
        # A file, since a command may wait for the descriptor of its input.
        with TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            ran = runner.invoke(command, list(arguments), input=file)
        assert ran.exit_code == code, f"{ran.exit_code}: {ran.output}{ran.exception!r}"
        return ran

    def json(self, command: click.Command, *arguments: str) -> Any:
        return json.loads(self.run(command, *arguments, "-O", "json").stdout)


@contextmanager
def shell(folder: Path, **topics: int) -> Iterator[Shell]:
    with broker_beside(
        folder, topics=topics, defaults={"auto.create.topics.enable": "false"}
    ) as broker:
        yield Shell(broker.bootstrap)
