"""`./samsa consume` against a broker of ours."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from cli.bootstrap import BOOTSTRAP_VARIABLE
from cli.consume import Printer, consume, parse_position, parse_time
from cli.environment import ROOT
from cli.produce import produce
from cli.record_format import Shape, renderer
from cli.topics import topics
from gateway.kafka.values import Position, PositionKind, Record
from tests.cli.data_commands import Shell, shell

END_SECONDS = 30
ONE = Record(topic="t", partition=0, offset=0, key=None, value=b"one")


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("broker"), orders=2, empty=1) as running:
        for number in range(6):
            running.run(produce, "orders", f"v{number}", "-p", "0", "-t", str(1000 + number))
        running.run(produce, "orders", "other", "-p", "1", "-t", "5000")
        yield running


def values(sh: Shell, *arguments: str) -> list[str]:
    return sh.run(consume, "orders", "-p", "0", *arguments).stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-e"], [0, 1, 2, 3, 4, 5]),
        (["-o", "beginning", "-c", "2"], [0, 1]),
        (["-o", "4", "-e"], [4, 5]),
        (["-o", "-2", "-e"], [4, 5]),
        (["-o", "-99", "-c", "1"], [0]),
        (["-o", "end", "-e"], []),
        (["-o", "s@1003", "-e"], [3, 4, 5]),
        (["-o", "e@1003"], [0, 1, 2]),
        (["-o", "s@1001", "-o", "e@1003"], [1, 2]),
        (["-o", "s@1970-01-01T00:00:01.004Z", "-e"], [4, 5]),
        (["-o", "s@9999", "-e"], []),
        (["-o", "e@9999"], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_reading_begins_and_ends_where_it_is_told(
    sh: Shell, arguments: list[str], expected: list[int]
) -> None:
    assert values(sh, *arguments) == [f"v{number}" for number in expected]


@pytest.mark.slow
def test_all_partitions_are_read_unless_some_are_named(sh: Shell) -> None:
    assert len(sh.run(consume, "orders", "-e").stdout.split()) == 7
    assert sh.run(consume, "orders", "-e", "-p", "1").stdout == "other\n"


@pytest.mark.slow
def test_an_empty_topic_has_an_end_too(sh: Shell) -> None:
    assert sh.run(consume, "empty", "-e").stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nobody"], 3, "topic nobody"),
        (["orders", "-p", "9"], 3, "topic orders, partition 9"),
        (["orders", "-o", "99", "-e"], 3, "OFFSET_OUT_OF_RANGE"),
        (["orders", "-o", "soon"], 2, "'soon' is not an offset"),
        (["orders", "-o", "1", "-o", "2"], 2, "a second position"),
        (["orders", "-o", "s@noon"], 2, "'noon' is not a time"),
        (["orders", "-f", "%y"], 2, "%y is not a format token"),
    ],
)
def test_what_is_missing_or_wrong_has_its_exit_code(
    sh: Shell, arguments: list[str], code: int, words: str
) -> None:
    assert words in sh.run(consume, *arguments, code=code).stderr


# As a terminal starts it: who runs the tests in the background has Ctrl-C ignored for all of them.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from cli.consume import consume
consume()
"""


def started(sh: Shell, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        env={**os.environ, BOOTSTRAP_VARIABLE: sh.bootstrap},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_a_reader_of_ours_that_leaves_is_no_error(sh: Shell) -> None:
    sh.run(topics, "create", "wide", "-p", "1")
    # More than a pipe holds, so that the writer meets the closed one.
    sh.run(produce, "wide", "-z", "zstd", stdin=b"x" * 1000 + (b"\n" + b"x" * 1000) * 2000)

    with started(sh, "wide", "-e") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()

        assert process.wait(END_SECONDS) == 0
        assert process.stderr.read() == b""


@pytest.mark.slow
def test_ctrl_c_ends_the_reading_without_a_word(sh: Shell) -> None:
    with started(sh, "orders", "-p", "1") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"other\n"

        process.send_signal(signal.SIGINT)

        assert process.wait(END_SECONDS) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("beginning", Position(kind=PositionKind.BEGINNING)),
        ("latest", Position(kind=PositionKind.END)),
        ("0", Position(kind=PositionKind.OFFSET, value=0)),
        ("-5", Position(kind=PositionKind.TAIL, value=5)),
        ("s@5", Position(kind=PositionKind.TIME, value=5)),
        ("s@1969-12-31", Position(kind=PositionKind.TIME, value=0)),
    ],
)
def test_a_place_is_read_as_kcat_reads_it(text: str, position: Position) -> None:
    assert parse_position(text) == position


@pytest.mark.parametrize("text", ["", "1.5", "0x10", "9223372036854775808", "s@-1", "s@"])
def test_a_place_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_position(text)


def test_a_date_without_a_zone_means_utc() -> None:
    assert parse_time("e@1970-01-02").value == 24 * 3600 * 1000
    assert parse_time("e@1970-01-02T01:00:00+01:00").value == 24 * 3600 * 1000


def test_a_time_may_be_so_long_ago() -> None:
    one, two = parse_time("s@-1h").value, parse_time("s@-2h").value

    assert one is not None
    assert two is not None
    assert 0 <= one - two - 3_600_000 + 1000 <= 2000


def test_records_are_written_until_there_are_enough() -> None:
    output = io.BytesIO()
    printer = Printer(renderer(Shape()), 3, output)

    assert printer.take([ONE, ONE])
    assert not printer.take([ONE, ONE])
    assert output.getvalue() == b"one\none\none\n"


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_safe_from_what_records_hold() -> None:
    output = Terminal()
    evil = Record(topic="t", partition=0, offset=0, key=None, value=b"\x1b]0;gotcha\x07")

    Printer(renderer(Shape()), None, output).take([evil])

    assert output.getvalue() == b"\\x1b]0;gotcha\\x07\n"
