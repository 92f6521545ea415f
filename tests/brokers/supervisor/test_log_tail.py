"""The end of a log is told whole, within bounds, and goes on where a cursor says."""

from pathlib import Path

import pytest

from brokers.supervisor.log_tail import MAX_LINE_CHARACTERS, MAX_TAIL_BYTES, read_tail
from brokers.supervisor.output import LogFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(tmp_path, "broker-1.log")


def test_the_newest_lines_come_oldest_first(path: Path) -> None:
    path.write_text("one\ntwo\nthree\n")

    found = read_tail(path, lines=2)

    assert found.lines == ("two", "three")
    assert not found.has_gap


def test_a_cursor_leads_to_what_came_after_it(path: Path) -> None:
    path.write_text("one\nhal")
    first = read_tail(path)
    with path.open("a") as file:
        file.write("f\nthree\n")

    then = read_tail(path, cursor=first.cursor)

    assert first.lines == ("one",)
    assert then.lines == ("half", "three")
    assert read_tail(path, cursor=then.cursor).lines == ()


def test_a_cursor_goes_on_across_rotations(path: Path) -> None:
    log = LogFile(path, max_bytes=20)
    log.write(b"the first line\n")
    first = read_tail(path)
    log.write(b"the second line\n")
    log.write(b"the third line\n")
    log.close()

    then = read_tail(path, cursor=first.cursor)

    assert then.lines == ("the second line", "the third line")
    assert not then.has_gap


@pytest.mark.parametrize("cursor", ["1:0", "x", "9" * 500, ":", "-1:-1"])
def test_a_cursor_that_leads_nowhere_says_that_something_is_missing(
    path: Path, cursor: str
) -> None:
    path.write_text("one\n")

    found = read_tail(path, cursor=cursor)

    assert found.lines == ("one",)
    assert found.has_gap


def test_what_does_not_fit_is_left_out_from_the_older_end(path: Path) -> None:
    path.write_text("old\n")
    first = read_tail(path)
    with path.open("a") as file:
        file.writelines(f"{number:0100}\n" for number in range(1000))

    then = read_tail(path, cursor=first.cursor, lines=500)

    assert then.has_gap
    assert sum(len(line) + 1 for line in then.lines) <= MAX_TAIL_BYTES
    assert then.lines[-1].endswith("0999")


def test_a_line_without_an_end_is_cut_and_passed(path: Path) -> None:
    path.write_text("x" * (2 * MAX_TAIL_BYTES))

    found = read_tail(path)

    assert found.lines == ("x" * MAX_LINE_CHARACTERS,)
    assert read_tail(path, cursor=found.cursor).lines == ()


def test_bytes_that_would_steer_a_terminal_are_blanks(path: Path) -> None:
    path.write_bytes(b"a\x1b[31mred\xff\n")

    assert read_tail(path).lines == ("a [31mred\N{REPLACEMENT CHARACTER}",)


def test_a_log_that_is_not_there_has_no_lines(path: Path) -> None:
    assert read_tail(path).lines == ()
