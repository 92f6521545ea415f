"""`./samsa produce` against a broker of ours."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.bootstrap import BOOTSTRAP_VARIABLE
from cli.consume import consume
from cli.environment import ROOT
from cli.produce import BLOCK_BYTES, INTERRUPTED, cut, produce
from cli.topics import topics
from gateway.kafka.clients import MAX_RECORD_BYTES
from gateway.kafka.errors import KafkaFailure
from tests.cli.data_commands import Shell, shell

END_SECONDS = 30
FORMAT = r"%p|%k|%K|%s|%S|%h\n"


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def topic(sh: Shell, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)[-100:].replace("[", ".").replace("]", "")
    sh.run(topics, "create", name, "-p", "2")
    return name


def lines(sh: Shell, topic: str) -> list[str]:
    ran = sh.run(consume, topic, "-e", "-f", FORMAT)
    return ran.stdout_bytes.decode().splitlines()


@pytest.mark.slow
def test_every_argument_is_a_record(sh: Shell, topic: str) -> None:
    told = sh.json(produce, topic, "a", "", "ü", "-p", "1")

    assert told == {
        "topic": topic,
        "acknowledged": 3,
        "complete": True,
        "partitions": [{"partition": 1, "records": 3, "last_offset": 2}],
    }
    assert lines(sh, topic) == ["1||-1|a|1|", "1||-1||0|", "1||-1|ü|2|"]


@pytest.mark.slow
def test_every_line_of_standard_input_is_a_record(sh: Shell, topic: str) -> None:
    sh.run(produce, topic, "-p", "0", stdin=b"one\n\ntwo\nno end of line")

    assert lines(sh, topic) == [
        "0||-1|one|3|",
        "0||-1||0|",
        "0||-1|two|3|",
        "0||-1|no end of line|14|",
    ]


@pytest.mark.slow
def test_a_line_may_hold_its_key(sh: Shell, topic: str) -> None:
    sh.run(produce, topic, "-p", "0", "-K", ":", stdin=b"k:v:w\n:no key\nno delimiter\n")

    assert lines(sh, topic) == ["0|k|1|v:w|3|", "0||0|no key|6|", "0||-1|no delimiter|12|"]


@pytest.mark.slow
def test_what_is_empty_is_null_where_that_is_asked_for(sh: Shell, topic: str) -> None:
    sh.run(produce, topic, "-p", "0", "-Z", "-K", ":", stdin=b"k:\n:v\n")

    assert lines(sh, topic) == ["0|k|1||-1|", "0||-1|v|1|"]


@pytest.mark.slow
def test_headers_key_and_time_hold_for_every_record(sh: Shell, topic: str) -> None:
    sh.run(produce, topic, "x", "-k", "key", "-H", "a=1=2", "-H", "b", "-t", "1234", "-p", "0")

    ran = sh.run(consume, topic, "-e", "-f", "%k %h %T")

    assert ran.stdout == "key a=1=2,b=NULL 1234"


@pytest.mark.slow
def test_a_whole_file_is_one_record_byte_for_byte(sh: Shell, topic: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 3000
    (tmp_path / "blob").write_bytes(content)

    sh.run(produce, topic, "-f", str(tmp_path / "blob"), "-p", "0", "-z", "lz4")

    assert sh.run(consume, topic, "-e", "-f", "%s").stdout_bytes == content


@pytest.mark.slow
def test_lines_of_a_file_are_cut_at_any_delimiter(sh: Shell, topic: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"a\nb\0\0c\0\0")

    sh.run(produce, topic, "-l", str(tmp_path / "lines"), "-D", r"\x00\x00", "-p", "0")

    assert sh.run(consume, topic, "-e", "-f", "[%s]").stdout == "[a\nb][c]"


@pytest.mark.slow
def test_it_stops_after_as_many_records_as_asked_for(sh: Shell, topic: str) -> None:
    told = sh.json(produce, topic, "a", "b", "c", "-c", "2")

    assert told["acknowledged"] == 2


@pytest.mark.slow
def test_a_topic_that_is_not_there_is_not_found(sh: Shell) -> None:
    property_ = "topic.metadata.propagation.max.ms=300"

    ran = sh.run(produce, "nobody", "x", "-X", property_, code=3)

    assert "0 records acknowledged by topic nobody." in ran.stderr
    assert "UNKNOWN_TOPIC_OR_PARTITION" in ran.stderr


@pytest.mark.slow
def test_a_record_that_is_too_large_fails_and_counts_what_came_before(
    sh: Shell, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "large").write_bytes(b"small\n" + bytes(2_000_000).replace(b"\0", b"x"))

    ran = sh.run(produce, topic, "-l", str(tmp_path / "large"), "-p", "0", code=1)

    assert "MESSAGE_TOO_LARGE" in ran.stderr
    assert "max.message.bytes" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["t", "a", "-l", "pyproject.toml"],
        ["t", "-D", ""],
        ["t", "-K", ""],
        ["t", "-z", "rot13"],
        ["t", "a", "-t", "0"],
    ],
)
def test_what_cannot_be_meant_is_a_wrong_command_line(arguments: list[str]) -> None:
    Shell("127.0.0.1:1").run(produce, *arguments, code=2)


def cut_text(text: bytes, end: bytes) -> list[bytes]:
    return list(cut(io.BufferedReader(io.BytesIO(text)), end))


@pytest.mark.parametrize("end", [b"\n", b"ab", b"aab"])
def test_records_are_cut_wherever_a_block_ends(end: bytes) -> None:
    """Delimiters are before, across and after the edge of a block."""
    for shift in range(-4, 5):
        parts = [b"x" * (BLOCK_BYTES + shift), b"", b"yy", b"z" * BLOCK_BYTES]

        assert cut_text(end.join(parts), end) == parts


def test_a_delimiter_at_the_end_adds_no_record() -> None:
    assert cut_text(b"a\nb\n", b"\n") == [b"a", b"b"]
    assert cut_text(b"", b"\n") == []


class Endless(io.RawIOBase):
    """A source that never has a delimiter, and counts what was taken of it."""

    taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        # Earlier parts may contain a delimiter.
        buffer[:] = bytes(len(buffer))
        self.taken += len(buffer)
        return len(buffer)


@pytest.mark.slow
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    source = Endless()

    with pytest.raises(KafkaFailure, match="MESSAGE_TOO_LARGE"):
        list(cut(io.BufferedReader(source), b"\n"))

    assert source.taken <= MAX_RECORD_BYTES + 2 * BLOCK_BYTES


@pytest.mark.slow
def test_bytes_of_an_argument_that_are_no_text_arrive_unchanged(sh: Shell, topic: str) -> None:
    sh.run(produce, topic, os.fsdecode(b"\xff\xfe"), "-p", "0")

    assert sh.run(consume, topic, "-e", "-f", "%s").stdout_bytes == b"\xff\xfe"


# As a terminal starts it: in a run of the tests in the background Ctrl-C is ignored by all of them.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from cli.produce import produce
produce()
"""


@pytest.mark.slow
def test_ctrl_c_stops_the_source_and_keeps_what_was_sent(sh: Shell, topic: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, topic, "-p", "0"],
        cwd=ROOT,
        env={**os.environ, BOOTSTRAP_VARIABLE: sh.bootstrap},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"typed\n")
        process.stdin.flush()
        # Ends when the record is there, so that the signal finds the command waiting for more.
        assert sh.run(consume, topic, "-c", "1").stdout == "typed\n"

        process.send_signal(signal.SIGINT)

        assert process.wait(END_SECONDS) == INTERRUPTED
        assert process.stderr.read() == b""
