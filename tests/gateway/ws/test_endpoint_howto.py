"""The program of docs/howto/use-websockets.md, run as it stands; its page is run by a browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.socket_door import EXAMPLES, TOKEN, door_beside

pytestmark = pytest.mark.slow


def test_the_examples_are_short() -> None:
    for text in EXAMPLES.values():
        assert text.count("\n") < 30


def test_the_program_writes_a_record_and_reads_what_there_is(tmp_path: Path) -> None:
    with door_beside(tmp_path) as address:
        program = subprocess.Popen(
            [sys.executable, "-c", EXAMPLES["python"]],
            env={**os.environ, "GATEWAY": address, "TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            text=True,
        )
        with program:
            try:
                assert program.stdout is not None
                told = [program.stdout.readline() for _ in range(6)]
            finally:
                program.kill()
    assert "'ready'" in told[0]
    assert "0 0 one\n" in told
    assert any("'receipt'" in line for line in told)
    assert "0 2 hello\n" in told
