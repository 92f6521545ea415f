"""Headers of every answer, and pages that can live with them."""

import gzip
import re
from pathlib import Path

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import Settings

from gateway.addresses import networks
from gateway.middleware import HEADERS, POLICY, ClientAddress

CONSOLE = Path(__file__).parents[2] / "console"
TEMPLATES = sorted(CONSOLE.glob("templates/console/*.html"))
ASSETS = sorted(
    path
    for path in CONSOLE.glob("static/console/**/*")
    if path.suffix in {".js", ".css", ".svg", ".html"}
)
# A vendored file begins with its project's address, which is never fetched.
BANNER = re.compile(r"\A/\*!.*?\*/", re.DOTALL)
# Comes with the markup of drawings; it is a name and is never fetched.
SVG_NAMESPACE = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("path", ["/login", "/", "/no/such/page", "/static/console/look.css"])
def test_every_answer_has_them(client: Client, path: str) -> None:
    answer = client.get(path)

    assert {name: answer[name] for name in HEADERS} == HEADERS
    answer.close()


def test_scripts_and_styles_are_compressed_and_pages_are_not(client: Client) -> None:
    takes = {"Accept-Encoding": "gzip, br"}
    plain = client.get("/static/console/look.css")
    first, again = (client.get("/static/console/look.css", headers=takes) for _ in range(2))
    page = client.get("/login", headers=takes)

    whole = plain.getvalue()
    assert gzip.decompress(first.content) == whole
    assert first.content == again.content
    assert len(first.content) < len(whole) / 3
    assert (first["Content-Encoding"], first["Content-Length"]) == ("gzip", str(len(first.content)))
    assert plain["Vary"] == first["Vary"] == "Accept-Encoding"
    assert first["Last-Modified"] == plain["Last-Modified"]
    assert not page.has_header("Content-Encoding")
    plain.close()


def test_the_address_behind_a_trusted_proxy_is_the_clients(
    rf: RequestFactory, settings: Settings
) -> None:
    seen: list[str] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request.META["REMOTE_ADDR"])
        return HttpResponse()

    through = rf.get("/", REMOTE_ADDR="10.0.0.7", headers={"x-forwarded-for": "198.51.100.9"})
    around = rf.get("/", REMOTE_ADDR="192.0.2.1", headers={"x-forwarded-for": "198.51.100.9"})

    ClientAddress(view)(around)
    settings.TRUSTED_PROXIES = networks(["10.0.0.7"])
    ClientAddress(view)(through)
    ClientAddress(view)(around)

    assert seen == ["192.0.2.1", "198.51.100.9", "192.0.2.1"]


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
    text = BANNER.sub("", path.read_text(encoding="utf-8")).replace(SVG_NAMESPACE, "")

    assert re.findall(r"https?:|@import|\burl\(", text) == []
