"""What an agent tells about itself in its home, and who reads it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers import agent_status as file
from tests.builders.conditions import NOW_MS, condition


def test_what_was_written_is_read(tmp_path: Path) -> None:
    said = condition(condition=file.REGRESSED, message="it was set back")

    file.write(tmp_path, said)

    assert file.read(tmp_path) == said
    assert said.is_regressed
    assert not list(tmp_path.glob("run/*.new"))


def test_a_status_is_its_owners_alone_and_names_what_others_read(tmp_path: Path) -> None:
    file.write(tmp_path, condition())

    written = tmp_path / file.STATUS_FILE
    assert written.stat().st_mode & 0o777 == 0o600
    told = json.loads(written.read_text())
    assert told["condition"] == "well"
    assert told["pid"] == os.getpid()
    assert told["written_at_ms"] == NOW_MS


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "null", "\ud800"])
def test_what_is_no_status_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / file.STATUS_FILE).write_bytes(text.encode("utf-8", "surrogatepass"))

    assert file.read(tmp_path) is None


def test_a_home_without_a_status_says_nothing(tmp_path: Path) -> None:
    assert file.read(tmp_path) is None
    file.remove(tmp_path)


@pytest.mark.parametrize(
    ("name", "message", "age_ms", "said"),
    [
        (file.WELL, "", 4_000, ""),
        (file.WELL, "", 12_000, "the agent has not responded for 12 s"),
        (file.CHANGES_WAIT, "no change for 12 s: database is locked", 0, "no change for 12 s"),
        (file.REGRESSED, "", 0, "regressed"),
    ],
)
def test_a_status_tells_why_nothing_can_be_changed(
    name: str, message: str, age_ms: int, said: str
) -> None:
    told = condition(condition=name, message=message, monotonic_ms=50_000)

    found = told.trouble(monotonic_ms=50_000 + age_ms)

    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_a_status_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    file.write(tmp_path, condition())
    path = tmp_path / file.STATUS_FILE
    keys = json.loads(path.read_text())
    del keys["oldest_write_ms"], keys["last_refusal"], keys["last_refusal_at_ms"]
    path.write_text(json.dumps(keys))

    assert file.read(tmp_path) == condition()


def test_a_client_without_rights_learns_nothing_of_the_database() -> None:
    words = 'connection to server at "10.0.0.5" failed: no password for user "samsa"'
    told = condition(
        condition=file.CHANGES_WAIT, message=f"no change for 12 s: {words}", oldest_write_ms=12_000
    )

    assert told.trouble(monotonic_ms=1).endswith(words)
    public = told.public_trouble(monotonic_ms=1)
    assert public == "no change for 12 s: `./samsa status` says why"
    assert "has not responded for 7 s" in told.public_trouble(monotonic_ms=7_001)
    assert condition().public_trouble(monotonic_ms=1) == ""


# --- the mark of its process ---------------------------------------------------------------------


def leave(home: Path, mark: str) -> None:
    (home / file.MARK_FILE).write_text(mark)


def namespace() -> str:
    return file.mark().split()[1]


def test_a_home_that_never_had_an_agent_misses_none(tmp_path: Path) -> None:
    assert not file.is_gone(tmp_path)


@contextmanager
def program(*words: str) -> Iterator[int]:
    """Run something under these words until the block ends; its process id."""
    waiting = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        # Until it speaks, it may not be called what it will be called.
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_an_agent_is_there_while_its_process_is(tmp_path: Path) -> None:
    with program("agent") as process:
        leave(tmp_path, f"{process}\n{namespace()}\n")
        was_gone = file.is_gone(tmp_path)

    assert not was_gone
    assert file.is_gone(tmp_path)


def test_another_program_of_the_same_number_is_no_agent(tmp_path: Path) -> None:
    with program() as process:
        leave(tmp_path, f"{process}\n{namespace()}\n")

        assert file.is_gone(tmp_path)


@pytest.mark.parametrize("mark", ["", "1\n", "x y", "1\npid:[1]\n", "\xff" * 300, "1 2 3"])
def test_who_cannot_be_seen_from_here_is_not_called_dead(tmp_path: Path, mark: str) -> None:
    leave(tmp_path, mark)

    assert not file.is_gone(tmp_path)
