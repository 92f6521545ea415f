"""Headers of every answer, and pages that can live with them."""

import re
from pathlib import Path

import pytest
from django.test import Client

from gateway.middleware import HEADERS, POLICY

CONSOLE = Path(__file__).parents[2] / "console"
TEMPLATES = sorted(CONSOLE.glob("templates/console/*.html"))
ASSETS = sorted(CONSOLE.glob("static/console/*"))
# Comes with the markup of drawings; it is a name and is never fetched.
SVG_NAMESPACE = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("path", ["/login", "/", "/no/such/page", "/static/console/look.css"])
def test_every_answer_has_them(client: Client, path: str) -> None:
    answer = client.get(path)

    assert {name: answer[name] for name in HEADERS} == HEADERS
    answer.close()


def test_the_policy_allows_nothing_that_stands_in_a_page() -> None:
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")


def test_pages_are_kept_by_nobody_and_static_files_for_a_while(client: Client) -> None:
    static = client.get("/static/console/look.css")

    assert client.get("/no/such/page")["Cache-Control"] == "no-store"
    assert "max-age" in static["Cache-Control"]
    static.close()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_holds_no_style_script_or_handler_of_its_own(template: Path) -> None:
    text = template.read_text(encoding="utf-8")

    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", text) == []


@pytest.mark.parametrize("path", [*TEMPLATES, *ASSETS], ids=lambda path: path.name)
def test_everything_a_page_needs_lies_on_this_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace(SVG_NAMESPACE, "")

    assert re.findall(r"https?:|@import|url\(", text) == []
