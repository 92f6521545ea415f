"""Django's settings: where databases and secrets of a home are, and how they are opened."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json
from gateway import settings
of_no_home = settings.SECRET_KEY if isinstance(settings.SECRET_KEY, str) else None
print(json.dumps({
    "databases": settings.DATABASES,
    "is_one": settings.IS_ONE_DATABASE,
    "key": of_no_home,
    "hosts": settings.ALLOWED_HOSTS,
    "cookies": [settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME],
    "secure": [settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE],
    "proxies": settings.TRUSTED_PROXIES,
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


def test_a_home_has_three_files_that_writers_share_in_turn(tmp_path: Path) -> None:
    said = settings_with(SAMSA_HOME=str(tmp_path))

    databases = said["databases"]
    assert isinstance(databases, dict)
    assert {alias: place["NAME"] for alias, place in databases.items()} == {
        "default": str(tmp_path / "web.db"),
        "cluster": str(tmp_path / "cluster.db"),
        "connect": str(tmp_path / "connect.db"),
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
    # The URL decides.
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


def test_settings_of_a_home_make_no_key(tmp_path: Path) -> None:
    said = settings_with(SAMSA_HOME=str(tmp_path / "home"))

    # Looked up in the agent's file when it is used.
    assert said["key"] is None
    assert not (tmp_path / "home").exists()


def test_the_console_answers_to_loopback_and_to_the_names_it_was_given(tmp_path: Path) -> None:
    plain = settings_with(SAMSA_HOME=str(tmp_path))
    named = settings_with(
        SAMSA_HOME=str(tmp_path),
        SAMSA_BIND="::",
        SAMSA_ADVERTISE="2001:db8::7",
        SAMSA_ALLOWED_HOSTS="console.example,10.0.0.7",
    )

    assert plain["hosts"] == [".localhost", "127.0.0.1", "[::1]"]
    assert named["hosts"] == [*plain["hosts"], "[2001:db8::7]", "console.example", "10.0.0.7"]


def test_cookies_bear_a_part_of_the_clusters_id(tmp_path: Path) -> None:
    before = settings_with(SAMSA_HOME=str(tmp_path))["cookies"]
    (tmp_path / "cluster-id").write_text("qpcakQqtTm-l3D8NBNcDBA\n", encoding="ascii")
    after = settings_with(SAMSA_HOME=str(tmp_path))["cookies"]
    (tmp_path / "cluster-id").write_text("no; cookie=1 of ours", encoding="ascii")

    assert before == ["sessionid", "csrftoken"]
    assert after == ["sessionid-qpcakQqt", "csrftoken-qpcakQqt"]
    assert settings_with(SAMSA_HOME=str(tmp_path))["cookies"] == before


def test_one_switch_keeps_cookies_to_https(tmp_path: Path) -> None:
    off = settings_with(SAMSA_HOME=str(tmp_path))
    on = settings_with(SAMSA_HOME=str(tmp_path), SAMSA_HTTPS="true")

    assert (off["secure"], on["secure"]) == ([False, False], [True, True])
    assert on["cookies"] == ["__Host-sessionid", "__Host-csrftoken"]


def test_a_proxy_that_is_no_address_is_refused_by_its_name(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "showmigrations"],
        cwd=ROOT,
        env={
            **os.environ,
            "SAMSA_HOME": str(tmp_path),
            "SAMSA_TRUSTED_PROXIES": "10.0.0.7,proxy.example",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "SAMSA_TRUSTED_PROXIES has 'proxy.example'; give addresses" in done.stderr


def test_without_a_home_nothing_is_written(tmp_path: Path) -> None:
    before = (ROOT / ".samsa").exists()

    said = settings_with()

    assert said["key"]
    assert (ROOT / ".samsa").exists() == before


def test_what_protects_users_is_on(tmp_path: Path) -> None:
    said = settings_with(SAMSA_HOME=str(tmp_path))

    assert said["debug"] is False
    assert said["hasher"] == "gateway.access.password_hasher.PasswordHasher"
