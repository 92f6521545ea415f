"""Each line of a file becomes one record, whatever becomes of the file."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from connectors.plugins.file.source import MAX_LINE_BYTES, FileSource
from connectors.sdk.errors import ConfigError, ConnectorError
from connectors.sdk.testing import MemorySourceContext, parse_config, run_source

LONG = "a line that is long enough to fill the head of a file with others\n" * 20


def read(context: MemorySourceContext, **config: str) -> list[Any]:
    keys = parse_config(
        FileSource.definition(),
        {
            "file": "log",
            "topic": "lines",
            **{name.replace("_", "."): config[name] for name in config},
        },
    )
    return [record.value for record in run_source(FileSource(), keys, context)]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_are_read_once_as_the_file_grows(files: Path) -> None:
    context, log = MemorySourceContext(), files / "log"

    told = [read(context)]
    for text in ("one\ntwo\nthr", "ee\r\n", "", "\nünf\n"):
        append(log, text)
        told.append(read(context))

    assert told == [[], ["one", "two"], ["three"], [], ["", "ünf"]]


def test_a_file_that_is_not_there_is_told_of_once(files: Path) -> None:
    context = MemorySourceContext()

    assert [read(context), read(context)] == [[], []]
    append(files / "log", "one\n")

    assert read(context) == ["one"]
    assert context.lines == [f"file {files}/log does not exist: the task reads it once it exists"]


def test_a_resume_from_any_line_gives_the_rest(files: Path) -> None:
    (files / "log").write_text("".join(f"{n}\n" for n in range(50)))
    keys = parse_config(FileSource.definition(), {"file": "log", "topic": "t", "batch.size": "7"})
    whole = run_source(FileSource(), keys, MemorySourceContext())

    for count in (1, 6, 7, 8, 50):
        context = MemorySourceContext()
        context.store(whole[:count])
        assert run_source(FileSource(), keys, context) == whole[count:]


def test_bytes_are_passed_as_they_are_where_that_is_asked_for(files: Path) -> None:
    (files / "log").write_bytes(b"\xff\x00\n")

    assert read(MemorySourceContext(), line_format="bytes") == [b"\xff\x00"]
    assert read(MemorySourceContext()) == ["�\x00"]


@pytest.mark.parametrize("first", ["one\n", LONG])
def test_a_renamed_file_is_read_to_its_end_before_its_successor(files: Path, first: str) -> None:
    context, log = MemorySourceContext(), files / "log"
    append(log, first)
    before = read(context)
    append(log, "two\nlast")
    log.rename(files / "log.1")
    append(log, "three\n")

    assert before == first.splitlines()
    assert read(context) == ["two", "last", "three"]
    assert read(context) == []


def test_a_file_that_is_renamed_while_it_is_read_loses_no_line(files: Path) -> None:
    context, log = MemorySourceContext(), files / "log"
    append(log, "one\n")
    task = FileSource().task()
    keys = parse_config(FileSource.definition(), {"file": "log", "topic": "lines"})
    task.start(context, keys)

    told = [record.value for record in task.poll()]
    append(log, "two\nend")
    log.rename(files / "log.1")
    append(log, "three\n")
    for _ in range(6):
        told += [record.value for record in task.poll()]
    task.stop()

    assert told == ["one", "two", "end", "three"]


def test_a_program_that_still_writes_to_a_renamed_file_completes_its_last_line(
    files: Path,
) -> None:
    context, log = MemorySourceContext(), files / "log"
    append(log, "one\n")
    told = [read(context)]
    append(log, "tw")
    log.rename(files / "log.1")
    log.touch()
    told.append(read(context))

    append(files / "log.1", "o\nthree\n")
    told.append(read(context))
    append(log, "four\n")

    assert told == [["one"], [], ["two", "three"]]
    assert read(context) == ["four"]


def test_files_that_are_renamed_again_and_again_lose_no_line(files: Path) -> None:
    context, log = MemorySourceContext(), files / "log"
    told = []
    for number in range(6):
        append(log, f"{number}\n")
        told += read(context)
        for older in range(number, 0, -1):
            (files / f"log.{older}").rename(files / f"log.{older + 1}")
        log.rename(files / "log.1")
    append(log, "6\n")

    assert told + read(context) == [str(number) for number in range(7)]


@pytest.mark.parametrize("again", ["new\n", LONG + LONG])
@pytest.mark.parametrize("first", ["one\ntwo\n", "1" + LONG])
def test_a_file_that_is_cut_or_written_anew_is_read_from_its_start(
    files: Path, first: str, again: str
) -> None:
    context, log = MemorySourceContext(), files / "log"
    append(log, first)
    read(context)
    shutil.copy(log, files / "log.1")
    log.write_text(again)

    assert read(context) == again.splitlines()
    assert "from its start" in context.lines[0]


def test_a_successor_of_a_file_that_is_gone_is_read_from_its_start(files: Path) -> None:
    context, log = MemorySourceContext(), files / "log"
    append(log, "one\n")
    read(context)
    log.rename(files / "elsewhere")
    append(log, "two\n")
    (files / "elsewhere").unlink()

    assert read(context) == ["two"]


def test_a_line_that_no_record_can_hold_is_refused_with_its_place(files: Path) -> None:
    (files / "log").write_bytes(b"ok\n" + b"x" * (MAX_LINE_BYTES + 1))

    context = MemorySourceContext()
    with pytest.raises(ConnectorError, match="the line at byte 3 is longer than 1048576 bytes"):
        read(context)


def test_an_offset_that_kafka_connect_has_stored_is_understood(files: Path) -> None:
    (files / "log").write_text("one\ntwo\n")
    context = MemorySourceContext(offsets={'{"filename":"log"}': '{"position": 4}'})

    assert read(context) == ["two"]


def test_only_positions_are_offsets() -> None:
    FileSource().alter_offsets({}, {"log": {"position": 4}, "other": None})

    with pytest.raises(ConfigError, match="position"):
        FileSource().alter_offsets({}, {"log": {"line": 4}})


def test_an_offset_of_a_user_names_no_inode(files: Path) -> None:
    other = files / "other"
    other.write_text("TOPSECRET\n")
    offset = {"position": 1, "inode": other.stat().st_ino, "head": 0, "head_bytes": 0}

    with pytest.raises(ConfigError, match=r'give \{"position": N\} alone'):
        FileSource().alter_offsets({}, {"log": offset})
