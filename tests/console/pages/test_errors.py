"""The pages for what went wrong."""

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import Client

from console.queries import overview
from tests.console import cluster_rows


def test_django_finds_no_fault_with_the_project() -> None:
    call_command("check", fail_level="WARNING")


def test_a_page_that_does_not_exist_says_so_in_the_look(client: Client) -> None:
    answer = client.get("/no/such/page")

    assert answer.status_code == 404
    assert "There is no such page" in answer.content.decode()
    assert "look.css" in answer.content.decode()


def test_a_host_name_with_nonsense_in_it_is_a_bad_request(client: Client) -> None:
    answer = client.get("/login", headers={"host": "a b<i>"})

    assert answer.status_code == 400
    assert "does not answer to the name a b&lt;i&gt;" in answer.content.decode()


def test_a_name_that_is_not_the_consoles_is_refused_with_what_to_do(client: Client) -> None:
    answer = client.get("/login", headers={"host": "evil.example"})

    assert answer.status_code == 400
    assert "does not answer to the name evil.example" in answer.content.decode()
    assert "SAMSA_ALLOWED_HOSTS" in answer.content.decode()


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000"])
def test_the_names_of_this_machine_are_the_consoles(client: Client, host: str) -> None:
    assert client.get("/login", headers={"host": host}).status_code == 200


def test_what_nobody_expected_is_a_page_without_details(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr(overview, "overview", fail)
    alice.raise_request_exception = False

    answer = alice.get("/")

    assert answer.status_code == 500
    assert "Something failed here" in answer.content.decode()
    assert "a secret of ours" not in answer.content.decode()


def test_a_database_without_sessions_is_told_by_its_name(alice: Client) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("ALTER TABLE access_session RENAME TO elsewhere")
    alice.raise_request_exception = False

    answer = alice.get("/")

    assert answer.status_code == 503
    assert "The database does not answer" in answer.content.decode()


def test_a_refusal_keeps_the_navigation_and_names_the_cluster(victor: Client) -> None:
    shown = cluster_rows.cluster()

    page = victor.get("/users").content.decode()
    unnamed = victor.get("/brokers/1/restart").content.decode()

    assert "You may not manage users" in page
    assert f'href="/topics?cluster={shown.cluster_id}"' in page
    assert "cluster ." not in unnamed
    assert "You may not manage brokers on the cluster." in unnamed
