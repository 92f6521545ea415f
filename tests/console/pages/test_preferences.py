"""Choosing theme and zone, without a script."""

import pytest
from django.test import Client

from console.preferences import THEME_COOKIE, TIMES_COOKIE


def test_a_choice_is_kept_in_the_browser_and_leads_back(alice: Client) -> None:
    answer = alice.post("/preferences", {"theme": "dark", "times": "local", "next": "/topics?q=a"})

    assert (answer.status_code, answer["Location"]) == (302, "/topics?q=a")
    assert alice.cookies[THEME_COOKIE].value == "dark"
    assert alice.cookies[THEME_COOKIE]["samesite"] == "Lax"
    assert alice.cookies[TIMES_COOKIE].value == "local"


def test_the_theme_of_the_system_keeps_no_cookie(alice: Client) -> None:
    alice.post("/preferences", {"theme": "dark"})
    alice.post("/preferences", {"theme": "system"})

    assert alice.cookies[THEME_COOKIE].value == ""


def test_the_page_has_the_theme_that_was_chosen(alice: Client) -> None:
    assert "data-theme" not in alice.get("/").content.decode().partition(">")[0]

    alice.post("/preferences", {"theme": "dark"})

    assert '<html lang="en" data-theme="dark">' in alice.get("/").content.decode()


def test_another_value_is_refused_with_the_choices(alice: Client) -> None:
    answer = alice.post("/preferences", {"theme": "pink"})

    assert answer.status_code == 400
    assert answer.content.decode() == "theme is 'pink'; choose one of dark, light, system"


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_it_leads_to_no_other_site(alice: Client, elsewhere: str) -> None:
    assert alice.post("/preferences", {"theme": "dark", "next": elsewhere})["Location"] == "/"


def test_it_is_neither_a_link_nor_for_strangers(alice: Client) -> None:
    assert alice.get("/preferences")["Location"] == "/"
    assert Client().post("/preferences", {"theme": "dark"}).status_code == 302
    assert Client(enforce_csrf_checks=True).post("/preferences").status_code == 403
