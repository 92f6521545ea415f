"""A log dir belongs to one broker of one cluster."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.cluster.store import Registered
from brokers.server.identity import ForeignLogDir, claim, read_identity, registration
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles

FILES = LocalFiles()
REGISTERED = Registered(broker_id=4, broker_epoch=9, cluster_id="the-cluster", version=9)


def test_a_new_dir_belongs_to_nobody_until_it_is_claimed(tmp_path: Path) -> None:
    new = read_identity(FILES, str(tmp_path))
    assert (new.broker_id, new.cluster_id) == (-1, "")

    claim(FILES, str(tmp_path), new, REGISTERED)

    found = read_identity(FILES, str(tmp_path))
    assert (found.broker_id, found.cluster_id) == (4, "the-cluster")
    assert found.directory_id == new.directory_id


def test_claiming_again_changes_nothing(tmp_path: Path) -> None:
    claim(FILES, str(tmp_path), read_identity(FILES, str(tmp_path)), REGISTERED)
    before = (tmp_path / "meta.properties").stat()

    claim(FILES, str(tmp_path), read_identity(FILES, str(tmp_path)), REGISTERED)

    assert (tmp_path / "meta.properties").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    "other", [replace(REGISTERED, broker_id=5), replace(REGISTERED, cluster_id="another")]
)
def test_a_dir_of_another_broker_is_refused_by_name(tmp_path: Path, other: Registered) -> None:
    claim(FILES, str(tmp_path), read_identity(FILES, str(tmp_path)), REGISTERED)

    with pytest.raises(ForeignLogDir, match="belongs to broker 4 of cluster the-cluster"):
        claim(FILES, str(tmp_path), read_identity(FILES, str(tmp_path)), other)


def test_a_dir_that_does_not_say_whose_it_is_is_not_guessed_about(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=x\n", encoding="ascii")

    with pytest.raises(StorageCorrupt):
        read_identity(FILES, str(tmp_path))


def test_each_registration_is_a_new_incarnation(tmp_path: Path) -> None:
    identity = read_identity(FILES, str(tmp_path))

    first, second = (
        registration(identity, host="h", port=1, inspection_port=2, rack=None, clean_epoch=None)
        for _ in range(2)
    )

    assert first.incarnation != second.incarnation
    assert first.log_dir_id == second.log_dir_id
    assert first.pid > 0
    assert first.boot_id
