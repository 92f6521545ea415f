"""The sign of life."""

from pathlib import Path

from django.db import connections
from django.test import Client

from tests.database import pointed_at


def test_it_answers_without_login_session_or_database(client: Client, tmp_path: Path) -> None:
    nowhere = {"NAME": tmp_path / "no" / "such" / "folder.db"}

    with pointed_at(dict.fromkeys(connections.settings, nowhere)):
        answer = client.get("/health")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert not answer.cookies


def test_it_is_never_answered_from_a_cache(client: Client) -> None:
    assert "no-store" in client.get("/health")["Cache-Control"]


def test_it_can_only_be_read(client: Client) -> None:
    assert client.head("/health").status_code == 200
    assert client.post("/health").status_code == 405
