"""Files of keys: written whole, read again when they change, for their owner alone."""

import os
import stat
from pathlib import Path

import pytest

from brokers.key_files import LOOK_SECONDS, MAX_FILE_BYTES, KeyFile, read_keys, write_keys
from tests.fakes.clock import ManualClock


def key_file(path: Path) -> tuple[KeyFile, ManualClock]:
    clock = ManualClock()
    return KeyFile(path, monotonic=clock.monotonic), clock


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys", ("2.new", "1.old"))

    assert read_keys(tmp_path / "keys") == ("2.new", "1.old")


def test_a_file_is_its_owners_alone_and_leaves_no_draft(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_keys(tmp_path / "secrets" / "keys", ("1.a",))
        write_keys(tmp_path / "secrets" / "keys", ("2.b",))
    finally:
        os.umask(before)

    file = tmp_path / "secrets" / "keys"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["keys"]


def test_a_rotation_is_seen_after_a_second_without_a_restart(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys", ("1.a",))
    file, clock = key_file(tmp_path / "keys")
    first = file.keys()

    write_keys(tmp_path / "keys", ("2.b", "1.a"))
    meanwhile = file.keys()
    clock.advance(int(1000 * LOOK_SECONDS))

    assert (first, meanwhile, file.keys()) == (("1.a",), ("1.a",), ("2.b", "1.a"))


def test_a_file_is_looked_at_once_a_second_however_often_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_keys(tmp_path / "keys", ("1.a",))
    looks: list[Path] = []
    look = Path.stat

    def counted(self: Path) -> os.stat_result:
        looks.append(self)
        return look(self)

    monkeypatch.setattr(Path, "stat", counted)
    file, clock = key_file(tmp_path / "keys")

    for _ in range(1000):
        file.keys()
        clock.advance(2)

    assert len(looks) <= 2 / LOOK_SECONDS + 1


def test_a_file_that_is_not_there_yet_is_found_as_soon_as_it_is(tmp_path: Path) -> None:
    file, _ = key_file(tmp_path / "keys")
    before = file.keys()

    write_keys(tmp_path / "keys", ("1.a",))

    assert (before, file.keys()) == ((), ("1.a",))


def test_keys_that_are_known_outlive_their_file(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys", ("1.a",))
    file, clock = key_file(tmp_path / "keys")
    file.keys()

    (tmp_path / "keys").unlink()
    clock.advance(5000)

    assert file.keys() == ("1.a",)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"a b c\n", b"\xff\xfe\n", b"x" * (MAX_FILE_BYTES + 1)],
    ids=["empty", "blank", "three", "binary", "long"],
)
def test_what_is_no_file_of_keys_gives_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys").write_bytes(content)
    file, _ = key_file(tmp_path / "keys")

    assert file.keys() == ()


def test_a_complaint_and_a_name_show_nothing_of_a_key(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("hunter2 hunter3 hunter4")
    file, _ = key_file(tmp_path / "keys")

    with pytest.raises(ValueError, match="is not a file of at most 2 keys") as refused:
        read_keys(tmp_path / "keys")

    assert "hunter" not in str(refused.value)
    assert "hunter" not in repr(file)
