"""`logs` shows the newest lines in the order of their times, and goes on where files rotate."""

import json
from pathlib import Path

from cli.logs import Tail, last_lines
from tests.cli.lifecycle import samsa


def written(home: Path, component: str, *lines: str) -> Path:
    path = home / "logs" / f"{component}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as log:
        log.writelines(f"{line}\n" for line in lines)
    return path


def entry(second: int, **keys: object) -> str:
    return json.dumps(
        {"event": "x", "level": "info", "timestamp": f"2026-01-01T00:00:{second}Z"} | keys
    )


def test_one_component_is_shown_without_names(tmp_path: Path) -> None:
    written(tmp_path, "agent", "plain", entry(10, topic="a b"))

    result = samsa("logs", "agent", "--home", tmp_path)

    assert result.stdout == "plain\n2026-01-01T00:00:10Z info    x topic=a b\n"


def test_all_are_merged_by_time(tmp_path: Path) -> None:
    written(tmp_path, "agent", entry(10), entry(30))
    written(tmp_path, "web", entry(20), "of the line before")

    result = samsa("logs", "--home", tmp_path)

    assert [line.split("|")[0].strip() for line in result.stdout.splitlines()] == [
        *("agent", "web", "web", "agent")
    ]


def test_a_time_in_milliseconds_is_shown_as_a_moment(tmp_path: Path) -> None:
    written(tmp_path, "supervisor", '{"event": "x", "timestamp_ms": 1700000000123}')

    assert "2023-11-14T22:13:20.123Z" in samsa("logs", "--home", tmp_path).stdout


def test_raw_lines_are_as_they_were_written(tmp_path: Path) -> None:
    written(tmp_path, "agent", entry(10))

    assert samsa("logs", "agent", "--raw", "--home", tmp_path).stdout == f"{entry(10)}\n"


def test_older_files_fill_up_what_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "agent", "three")
    path.with_name("agent.log.1").write_text("one\ntwo\n", encoding="utf-8")

    assert last_lines(path, 2) == ["two", "three"]
    assert last_lines(path, 1) == ["three"]


def test_a_tail_gives_every_line_once_across_a_rotation(tmp_path: Path) -> None:
    path = written(tmp_path, "agent", "one")
    tail = Tail("agent", path, 10)
    assert list(tail.take()) == ["one"]

    written(tmp_path, "agent", "two")
    assert list(tail.take()) == ["two"]
    written(tmp_path, "agent", "three")
    path.rename(path.with_name("agent.log.1"))
    written(tmp_path, "agent", "four")

    assert list(tail.take()) == ["three", "four"]
    assert list(tail.take()) == []
    tail.close()


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, "agent", "one")
    tail = Tail("agent", path, 0)
    assert list(tail.take()) == []

    with path.open("a", encoding="utf-8") as log:
        log.write("ha")
    assert list(tail.take()) == []
    written(tmp_path, "agent", "lf")

    assert list(tail.take()) == ["half"]
    tail.close()


def test_an_unknown_component_is_answered_with_those_there_are(tmp_path: Path) -> None:
    written(tmp_path, "agent", "one")

    result = samsa("logs", "nobody", "--home", tmp_path)

    assert result.exit_code == 3
    assert "nobody has no log" in result.stderr
    assert "choose from agent" in result.stderr


def test_a_home_without_logs_says_so(tmp_path: Path) -> None:
    assert "start it with `./samsa up`" in samsa("logs", "--home", tmp_path).stderr
