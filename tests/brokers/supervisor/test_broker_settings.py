"""Static settings of a home: from its file and from the command line, checked before a start."""

import json
from pathlib import Path

import pytest

from brokers.supervisor.broker_settings import (
    FILE_NAME,
    MAX_FILE_BYTES,
    environment,
    parse_setting,
    read_file,
)
from brokers.supervisor.components import Doors, Kind, table
from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options, check

DELAY = "group.initial.rebalance.delay.ms"
AUTO = "auto.create.topics.enable"
VARIABLE = "SAMSA_DEFAULTS"


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def told(home: Path, *settings: str) -> dict[str, str]:
    """What the brokers of a home are told; every one the same, and nobody else."""
    rows = table(Options(home=home, settings=settings), Home(home), Doors())
    carried = {row.environment.get(VARIABLE) for row in rows if row.kind is Kind.BROKER}
    assert not any(VARIABLE in row.environment for row in rows if row.kind is not Kind.BROKER)
    (text,) = carried
    found: dict[str, str] = json.loads(text or "{}")
    return found


def write(home: Path, text: str) -> None:
    (home / FILE_NAME).write_text(text, encoding="utf-8")


def test_a_home_without_settings_tells_none(tmp_path: Path) -> None:
    assert environment(tmp_path, ()) == {}
    assert told(tmp_path) == {}


def test_the_command_line_wins_over_the_file_and_the_file_over_what_was_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps({AUTO: "true", DELAY: "1", "broker.rack": "a"}))
    write(tmp_path, f"{AUTO}=false\n{DELAY}=2\n")

    assert told(tmp_path, f"{DELAY}=3") == {AUTO: "false", DELAY: "3", "broker.rack": "a"}


def test_sizes_and_durations_of_settings_reach_brokers_as_numbers(tmp_path: Path) -> None:
    write(tmp_path, "log.retention.ms=7 d\nlog.segment.bytes=512 MiB\n")

    assert told(tmp_path, "log.retention.bytes=5GiB", "log.retention.ms=2d") == {
        "log.retention.ms": "172800000",
        "log.segment.bytes": str(512 * 2**20),
        "log.retention.bytes": str(5 * 2**30),
    }
    with pytest.raises(StartRefused, match="'2x', and that is not a duration: write 2d"):
        told(tmp_path, "log.retention.ms=2x")


def test_the_last_of_several_on_the_command_line_wins(tmp_path: Path) -> None:
    assert told(tmp_path, f"{DELAY}=3", f" {DELAY} = 4 ") == {DELAY: "4"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (AUTO, "is not of the form key=value"),
        ("=1", "is not of the form key=value"),
        ("auto.create.topic.enable=1", f"near it: {AUTO}"),
        (f"{AUTO}=perhaps", f"{AUTO} is 'perhaps'"),
        ("super.users=User:a", "would have no effect"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(StartRefused, match=words):
        parse_setting(text)
    with pytest.raises(StartRefused, match=words):
        check(Options(home=Path("/srv"), settings=(text,)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no.such.key=1", "no broker config 'no.such.key'"),
        (f"{DELAY}=soon", f"{DELAY} is 'soon'"),
        ("a=1\na=2", "set twice"),
        ("#" * (MAX_FILE_BYTES + 1), "larger than 65536 bytes"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_its_path(
    tmp_path: Path, text: str, words: str
) -> None:
    write(tmp_path, text)

    with pytest.raises(StartRefused, match=words) as refused:
        table(Options(home=tmp_path), Home(tmp_path), Doors())

    assert str(tmp_path / FILE_NAME) in str(refused.value)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\xff\xfe")
    with pytest.raises(StartRefused, match="utf-8"):
        read_file(tmp_path / FILE_NAME)
    (tmp_path / FILE_NAME).unlink()
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StartRefused, match="cannot be read"):
        read_file(tmp_path / FILE_NAME)


def test_a_variable_that_is_no_json_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "{")

    with pytest.raises(StartRefused, match="SAMSA_DEFAULTS is not JSON"):
        environment(tmp_path, ())
