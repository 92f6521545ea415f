"""What is copied as a command means in a shell what the record holds, and nothing else."""

import random
import shutil
import subprocess

import pytest

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")

HOSTILE = [
    b"",
    b"plain",
    b"-n",
    b"it's",
    b"$(touch /tmp/pwned) `id` ${HOME} $HOME",
    b"a;b|c&d>e<f *?[x] ~ #",
    b'"double" \\ back \\n',
    b"!history !! a'!'b",
    b"line\nline\r\n\ttab\x07\x1b[31m\x7f",
    b"\xff\xfe\x80raw\xc3(",
    b"\xff123",
    "ü€😀 \u202egnp.exe \u00a0\u2028".encode(),
    b"'" * 50,
    b"%s%n\\x41\\0",
]


def written(*given: bytes) -> list[str | None]:
    expression = "given.map((list) => m.quoted(bytes(list)) ?? null)"
    return list(evaluated("messages/shell.js", expression, [list(data) for data in given]))


def read_by(shell: str, words: list[str]) -> list[bytes]:
    script = "".join(f"printf '%s\\0' {word}\n" for word in words)
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_reads_the_bytes_back(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    draw = random.Random(11)
    drawn = [bytes(draw.choices(range(1, 256), k=draw.randrange(40))) for _ in range(300)]
    given = [*HOSTILE, *drawn]

    words = [word for word in written(*given) if word is not None]

    assert read_by(shell, words) == given
    # One line each, so that a terminal runs nothing before somebody presses Enter.
    assert not any(set(word) & set("\n\r\x1b\x07\u202e\u2028") for word in words)


def test_a_nul_fits_into_no_word() -> None:
    assert written(b"a\0b") == [None]
