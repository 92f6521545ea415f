"""A home is private where it must be, owned by one, and has room for its sockets."""

import json
import os
import pwd
from pathlib import Path

import pytest

from brokers.supervisor.errors import NotRunning, StartRefused
from brokers.supervisor.home import MAX_SOCKET_PATH_BYTES, Home


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def deep_home(tmp_path: Path) -> Home:
    home = Home(tmp_path / ("d" * 60) / ("e" * 60))
    home.prepare()
    return home


def test_secrets_and_sockets_are_the_owners_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    home.prepare()

    assert (mode(home.secrets), mode(home.run)) == (0o700, 0o700)


def test_a_new_home_is_the_owners_alone_and_an_old_one_stays_as_it_is(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir(mode=0o755)

    Home(old).prepare()
    Home(new).prepare()

    assert (mode(old), mode(new)) == (0o755, 0o700)


def test_a_second_start_keeps_the_keys(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()
    home.secret_file.write_text("1.key")

    home.prepare()

    assert home.secret_file.read_text() == "1.key"


def test_a_home_below_a_file_is_refused_with_its_name(tmp_path: Path) -> None:
    Path(tmp_path, "file").touch()

    with pytest.raises(StartRefused, match=r"file/home cannot be written .* another --home"):
        Home(tmp_path / "file" / "home").prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
def test_a_home_of_somebody_else_is_refused(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)

    os.seteuid(nobody)
    try:
        with pytest.raises(StartRefused, match="Permission denied"):
            Home(tmp_path / "home").prepare()
    finally:
        os.seteuid(0)


def test_nobody_owns_a_home_that_is_not_there(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    assert not home.is_owned()
    assert home.owner() == 0


def test_settings_are_read_whole(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()

    home.write_settings({"bootstrap": "here:1"})

    assert json.loads(home.settings_file.read_text()) == {"bootstrap": "here:1"}
    assert [path.name for path in home.run.iterdir()] == ["settings.json"]


def test_sockets_lie_in_the_home_where_they_fit(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()

    assert home.socket_folder() == home.run


def test_sockets_of_a_deep_home_lie_in_a_recorded_short_folder(tmp_path: Path) -> None:
    home = deep_home(tmp_path)

    folder = home.socket_folder()

    try:
        assert mode(folder) == 0o700
        assert len(os.fsencode(home.control_socket())) <= MAX_SOCKET_PATH_BYTES
        assert Home(home.folder).socket_folder() == folder
    finally:
        home.remove_sockets()
    assert not folder.exists()


def test_a_short_folder_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    home = deep_home(tmp_path)
    stale = home.socket_folder()
    stale.chmod(0o755)

    fresh = home.socket_folder()

    assert fresh != stale
    home.remove_sockets()
    stale.rmdir()


def test_a_deep_home_that_never_ran_has_no_control_socket(tmp_path: Path) -> None:
    with pytest.raises(NotRunning):
        deep_home(tmp_path).control_socket()
