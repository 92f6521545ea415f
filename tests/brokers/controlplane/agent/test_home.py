"""The home of an agent: one at a time, and the same one every time."""

import os
from pathlib import Path

import pytest

from tests.database import project_home

project_home()

from brokers.controlplane.agent import home  # noqa: E402


def test_a_home_is_held_by_one_agent(tmp_path: Path) -> None:
    with (
        home.locked(tmp_path),
        pytest.raises(home.HomeInUse, match=f"process id {os.getpid()}"),
        home.locked(tmp_path),
    ):
        pass


def test_a_home_that_was_left_can_be_taken(tmp_path: Path) -> None:
    with home.locked(tmp_path / "new"):
        pass

    with home.locked(tmp_path / "new"):
        pass


def test_an_agent_keeps_its_id(tmp_path: Path) -> None:
    first = home.agent_id(tmp_path)

    assert home.agent_id(tmp_path) == first
    assert len(first) == 36


@pytest.mark.parametrize("written", ["", "nonsense\n", "\0" * 37])
def test_an_id_that_is_none_is_told_with_its_file(tmp_path: Path, written: str) -> None:
    (tmp_path / home.ID_FILE).write_text(written)

    with pytest.raises(home.HomeDamaged, match="agent-id holds no agent id"):
        home.agent_id(tmp_path)


def test_an_id_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, bool]] = []

    def sync(handle: int) -> None:
        synced.append((os.fstat(handle).st_size, (tmp_path / home.ID_FILE).exists()))

    monkeypatch.setattr(os, "fsync", sync)
    home.agent_id(tmp_path)

    assert synced[0] == (37, False)
    assert synced[1][1]


def test_the_host_and_its_boot_have_names() -> None:
    assert home.host_name()
    assert len(home.boot_id()) in {0, 36}
