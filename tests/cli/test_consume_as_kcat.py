"""What `./samsa consume` prints is what kcat prints, byte for byte."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from cli.consume import consume
from cli.produce import produce
from cli.topics import topics
from tests.cli.data_commands import Shell, shell
from tests.extras import requires

pytestmark = [pytest.mark.interop, pytest.mark.slow, requires("kcat")]

KCAT_SECONDS = 60


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A topic with all that is odd: nulls, empties, headers, bytes that are no text."""
    with shell(tmp_path_factory.mktemp("broker")) as running:
        running.run(topics, "create", "odd", "-p", "1")
        running.run(produce, "odd", "a b", "ü", "", "-k", "key", "-H", "h1=v1", "-H", "h2")
        running.run(produce, "odd", "-K", ":", "-Z", stdin=b"k:\n:v\n:\n")
        running.run(produce, "odd", "-D", r"\xfe", stdin=b"\xff\x00bin\n\xfemore")
        yield running


def printed(sh: Shell, *arguments: str) -> tuple[bytes, bytes]:
    """Return what both print for the same arguments: ours, then kcat's."""
    common = ["-e", "-q", *arguments]
    ours = sh.run(consume, "odd", *common).stdout_bytes
    theirs = subprocess.run(
        ["kcat", "-b", sh.bootstrap, "-C", "-t", "odd", *common],
        capture_output=True,
        timeout=KCAT_SECONDS,
        check=True,
    )
    return ours, theirs.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-f", r"%t|%p|%o|%k|%K|%s|%S|%T|%h|%%\n"],
        ["-f", "%R%s"],
        ["-f", r"\x41%s\t\r\n"],
        # From behind the empty value, for which kcat says NULL too, and we do not.
        ["-o", "3", "-Z", "-f", r"%k %s %h\n"],
        ["-K", ":"],
        ["-o", "3", "-K", r"\t", "-Z"],
        ["-D", "|"],
        ["-o", "-2"],
        ["-o", "3", "-c", "2"],
        ["-o", "s@1"],
    ],
    ids=" ".join,
)
def test_the_same_arguments_print_the_same_bytes(sh: Shell, arguments: list[str]) -> None:
    ours, theirs = printed(sh, *arguments)

    assert ours == theirs
    assert ours


def test_an_empty_value_is_not_called_null(sh: Shell) -> None:
    ours, theirs = printed(sh, "-Z", "-o", "2", "-c", "1")

    assert (ours, theirs) == (b"\n", b"NULL\n")


def test_json_differs_in_the_broker_that_kcat_adds_and_the_bytes_that_we_keep(sh: Shell) -> None:
    def rows(text: bytes) -> list[dict[str, Any]]:
        # kcat writes bytes that are no text as they are, which makes its line no JSON.
        lines = text.decode("utf-8", "replace").splitlines()
        left_out = {"broker", "key_base64", "payload_base64"}
        return [
            {name: value for name, value in json.loads(line).items() if name not in left_out}
            for line in lines
        ]

    ours, theirs = printed(sh, "-J")

    assert rows(ours) == rows(theirs)
