"""Django's settings: where databases and secrets of a home are, and how they are opened."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.secret_files import read_or_make

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json
from gateway import settings
print(json.dumps({
    "databases": settings.DATABASES,
    "is_one": settings.IS_ONE_DATABASE,
    "key": settings.SECRET_KEY,
    "debug": settings.DEBUG,
    "hasher": settings.PASSWORD_HASHERS[0],
}, default=str))
"""


def settings_with(**environment: str) -> dict[str, object]:
    """Return what settings say under an environment of their own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SAMSA_", "DATABASE_", "DJANGO_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, object] = json.loads(done.stdout)
    return said


def test_a_home_has_two_files_that_writers_share_in_turn(tmp_path: Path) -> None:
    said = settings_with(SAMSA_HOME=str(tmp_path))

    databases = said["databases"]
    assert isinstance(databases, dict)
    assert {alias: place["NAME"] for alias, place in databases.items()} == {
        "default": str(tmp_path / "web.db"),
        "cluster": str(tmp_path / "cluster.db"),
    }
    for place in databases.values():
        assert place["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
        assert "journal_mode=WAL" in place["OPTIONS"]["init_command"]
        assert "synchronous=FULL" in place["OPTIONS"]["init_command"]
    assert said["is_one"] is False


def test_a_database_url_takes_the_place_of_both(tmp_path: Path) -> None:
    said = settings_with(
        SAMSA_HOME=str(tmp_path), DATABASE_URL="postgres://samsa:secret@db.test:5433/kafka"
    )

    databases = said["databases"]
    assert isinstance(databases, dict)
    assert databases["default"] == databases["cluster"]
    assert databases["default"]["ENGINE"] == "django.db.backends.postgresql"
    assert databases["default"]["HOST"] == "db.test"
    assert databases["default"]["OPTIONS"]["pool"]["max_size"] > 1
    assert said["is_one"] is True


def test_a_server_that_is_gone_is_given_up_in_seconds(tmp_path: Path) -> None:
    url = "postgres://samsa@db.test/kafka?keepalives_idle=60"
    databases = settings_with(SAMSA_HOME=str(tmp_path), DATABASE_URL=url)["databases"]

    assert isinstance(databases, dict)
    options = databases["default"]["OPTIONS"]
    # What the URL says holds.
    assert int(options["keepalives_idle"]) == 60
    assert options["tcp_user_timeout"] <= 30_000
    assert "statement_timeout" in options["options"]
    assert "idle_in_transaction_session_timeout" in options["options"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://samsa:secret@db.test/kafka", "has mysql://"),
        ("nonsense://samsa:secret@db.test/kafka", "has nonsense://"),
        ("db.test/kafka", "has no scheme"),
        ("postgres://samsa:secret@db.test:port/kafka", "cannot be read"),
    ],
)
def test_a_database_url_that_is_none_is_told_in_one_sentence(
    tmp_path: Path, url: str, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "showmigrations"],
        cwd=ROOT,
        env={**os.environ, "SAMSA_HOME": str(tmp_path), "DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert said in done.stderr
    assert "postgres://USER:PASSWORD@HOST:PORT/NAME" in done.stderr
    assert "secret" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_home_keeps_its_secret_key_to_itself(tmp_path: Path) -> None:
    first = settings_with(SAMSA_HOME=str(tmp_path))
    again = settings_with(SAMSA_HOME=str(tmp_path))
    other = settings_with(SAMSA_HOME=str(tmp_path / "other"))

    key = tmp_path / "secrets" / "secret-key"
    assert first["key"] == again["key"] != other["key"]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_without_a_home_nothing_is_written(tmp_path: Path) -> None:
    before = (ROOT / ".samsa").exists()

    said = settings_with()

    assert said["key"]
    assert (ROOT / ".samsa").exists() == before


def test_what_protects_users_is_on(tmp_path: Path) -> None:
    said = settings_with(SAMSA_HOME=str(tmp_path))

    assert said["debug"] is False
    assert "argon2" in str(said["hasher"]).lower()


def test_two_processes_that_make_a_secret_agree(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "key"
    program = (
        "import sys; from pathlib import Path; from gateway.secret_files import read_or_make;"
        "print(read_or_make(Path(sys.argv[1])))"
    )
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(file)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]

    said = {maker.communicate()[0].strip() for maker in makers}

    assert said == {read_or_make(file)}
    assert [path.name for path in file.parent.iterdir()] == ["key"]
