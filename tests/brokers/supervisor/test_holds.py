"""What is written of stopped brokers is read again, and nothing else is believed."""

import os
from pathlib import Path

import pytest

from brokers.supervisor import holds
from brokers.supervisor.holds import MAX_NAME, Hold

HOLD = Hold(by="User:alice", at_ms=1_700_000_000_000, broker_id=2)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    holds.write(tmp_path, {"broker-2": HOLD})

    assert holds.read(tmp_path) == {"broker-2": HOLD}
    assert Path(tmp_path, "held.json").stat().st_mode & 0o077 == 0


def test_a_hold_is_on_the_disk_with_its_name_before_anybody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []
    flush = os.fsync

    def noted(handle: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{handle}"))
        flush(handle)

    monkeypatch.setattr(os, "fsync", noted)

    holds.write(tmp_path, {"broker-2": HOLD})

    assert flushed == [str(tmp_path / "held.new"), str(tmp_path)]


def test_a_hundred_brokers_can_be_held_by_names_of_any_letters(tmp_path: Path) -> None:
    held = {
        f"broker-{number}": Hold(by="\N{GRINNING FACE}" * MAX_NAME, at_ms=1, broker_id=number)
        for number in range(100)
    }

    holds.write(tmp_path, held)

    assert holds.read(tmp_path) == held


def test_without_a_file_nothing_is_held(tmp_path: Path) -> None:
    assert holds.read(tmp_path) == {}
    assert holds.read(Path(tmp_path, "no home")) == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"broker-1": 1}', '{"broker-1": {"by": "x"}}'])
def test_a_file_that_makes_no_sense_is_refused_by_name(tmp_path: Path, text: str) -> None:
    Path(tmp_path, "held.json").write_text(text)

    with pytest.raises(ValueError, match=r"held\.json"):
        holds.read(tmp_path)
