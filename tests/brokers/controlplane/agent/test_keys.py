"""Files of keys: every home of a cluster gets the same ones, and follows a rotation."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.test.utils import override_settings

from brokers.cluster.image import Position
from brokers.cluster.store import MetadataRegressed
from tests.database import project_home, sqlite_databases

project_home()

from brokers.controlplane import services  # noqa: E402
from brokers.controlplane.agent.keys import look_once  # noqa: E402
from brokers.controlplane.cluster_secrets import ACTIVATION_MS  # noqa: E402
from brokers.key_files import read_keys  # noqa: E402
from brokers.security.cluster_keys import Purpose  # noqa: E402

NOW_MS = 1_700_000_000_000
NOWHERE = Position()


@pytest.fixture(autouse=True)
def database(tmp_path: Path) -> Iterator[None]:
    with sqlite_databases(tmp_path):
        yield


@pytest.fixture
def cluster_id() -> str:
    return services.ensure_cluster(name="local", now_ms=NOW_MS).cluster_id


@contextmanager
def home(folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    with override_settings(SAMSA_HOME=folder, SAMSA_SECRETS=folder / "secrets"):
        yield folder / "secrets"


def look(
    folder: Path, cluster_id: str, now_ms: int = NOW_MS, after: Position = NOWHERE
) -> dict[str, tuple[str, ...]]:
    """Do what the agent of a home does from time to time; return what its files have then."""
    with home(folder) as secrets:
        look_once(cluster_id, now_ms, after=after)
    return {purpose.value: read_keys(secrets / purpose.value) for purpose in Purpose}


def test_two_homes_of_a_cluster_have_the_same_keys(tmp_path: Path, cluster_id: str) -> None:
    one, two = (look(tmp_path / name, cluster_id) for name in ("one", "two"))

    assert one == two
    assert set(one) == {"inspection", "metrics", "session", "peer", "token"}


def test_keys_of_a_database_that_was_set_back_are_not_believed(
    tmp_path: Path, cluster_id: str
) -> None:
    before = look(tmp_path / "one", cluster_id)
    services.rotate_secret(name="local", purpose=Purpose.SESSION, now_ms=NOW_MS)

    with pytest.raises(MetadataRegressed):
        look(tmp_path / "one", cluster_id, after=Position(version=1, id=bytes(16)))

    assert read_keys(tmp_path / "one" / "secrets" / "session") == before["session"]


def test_files_stay_while_the_database_has_no_secrets(tmp_path: Path, cluster_id: str) -> None:
    before = look(tmp_path / "one", cluster_id)

    assert look(tmp_path / "one", "another-cluster") == before


def test_files_are_their_owners_alone(tmp_path: Path, cluster_id: str) -> None:
    look(tmp_path / "one", cluster_id)

    secrets = tmp_path / "one" / "secrets"
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets.iterdir()} == {0o600}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700


def test_a_rotation_reaches_every_home_before_its_key_is_used(
    tmp_path: Path, cluster_id: str
) -> None:
    (old,) = look(tmp_path / "one", cluster_id)["session"]
    services.rotate_secret(name="local", purpose=Purpose.SESSION, now_ms=NOW_MS)

    meanwhile = [look(tmp_path / name, cluster_id)["session"] for name in ("one", "two")]
    after = look(tmp_path / "one", cluster_id, NOW_MS + ACTIVATION_MS)["session"]

    assert meanwhile[0] == meanwhile[1] == (old, after[0])
    assert after == (meanwhile[0][1], old)


def test_files_that_are_right_are_left_alone(tmp_path: Path, cluster_id: str) -> None:
    look(tmp_path / "one", cluster_id)
    files = sorted((tmp_path / "one").rglob("*"))
    before = [file.stat().st_ino for file in files]

    look(tmp_path / "one", cluster_id)

    assert [file.stat().st_ino for file in files] == before


def test_a_file_that_was_lost_comes_back(tmp_path: Path, cluster_id: str) -> None:
    before = look(tmp_path / "one", cluster_id)
    (tmp_path / "one" / "secrets" / "session").unlink()
    (tmp_path / "one" / "secrets" / "metrics").write_bytes(b"\xff" * 5000)

    assert look(tmp_path / "one", cluster_id) == before


def test_the_inspection_secret_of_an_earlier_release_opens_until_a_rotation(
    tmp_path: Path, cluster_id: str
) -> None:
    with home(tmp_path / "one") as secrets:
        secrets.mkdir()
        (secrets / "inspection").write_text(f"{'ab' * 32}\n", encoding="ascii")

    first, again = (look(tmp_path / "one", cluster_id)["inspection"] for _ in range(2))
    services.rotate_secret(name="local", purpose=Purpose.INSPECTION, now_ms=NOW_MS)
    rotated = look(tmp_path / "one", cluster_id)["inspection"]

    assert first == again
    assert first[1] == "ab" * 32
    assert first[0] == rotated[0] == look(tmp_path / "two", cluster_id)["inspection"][0]
    assert "ab" * 32 not in rotated


def test_the_log_names_files_and_numbers_and_no_key(
    tmp_path: Path, cluster_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with home(tmp_path / "one") as secrets:
        secrets.mkdir()
        (secrets / "inspection").write_text(f"{'ab' * 32}\n", encoding="ascii")
    made = look(tmp_path / "one", cluster_id)

    said = "".join(capsys.readouterr())

    assert '"key_ids": ["1", "of an earlier release"]' in said
    digits = [key.rpartition(".")[2] for keys in made.values() for key in keys]
    assert [key for key in digits if key in said] == []


def test_a_home_says_which_cluster_it_belongs_to(tmp_path: Path, cluster_id: str) -> None:
    look(tmp_path / "one", cluster_id)

    assert (tmp_path / "one" / "cluster-id").read_text() == f"{cluster_id}\n"
