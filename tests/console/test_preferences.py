"""Cookies are what a browser sends, which may be anything."""

import pytest
from django.test import Client, RequestFactory

from console.preferences import Preferences, preferences_of, zone_named
from tests.console import cluster_rows


def sent(**cookies: str) -> Preferences:
    request = RequestFactory().get("/")
    request.COOKIES.update({f"samsa-{name}": value for name, value in cookies.items()})
    return preferences_of(request)


def test_without_cookies_times_are_utc_and_the_system_has_the_theme() -> None:
    assert sent() == Preferences()


def test_the_zone_of_the_browser_counts_once_local_times_are_wanted() -> None:
    assert sent(zone="Europe/Berlin").zone_name == "UTC"
    assert sent(zone="Europe/Berlin", times="local").zone_name == "Europe/Berlin"
    assert sent(zone="Europe/Berlin", times="local").is_local


@pytest.mark.parametrize(
    "name",
    ["", "Europe", "Europe/Nowhere", "../../etc/passwd", "/etc/localtime", "A" * 65, "Ü", "a\0b"],
)
def test_a_name_that_is_no_zone_leaves_utc(name: str) -> None:
    assert zone_named(name) is None
    assert sent(zone=name, times="local") == Preferences()


def test_a_theme_is_one_of_the_two_or_none() -> None:
    assert sent(theme="dark").theme == "dark"
    assert sent(theme='dark" onload="').theme == ""


def test_every_time_of_a_page_is_in_the_zone_of_the_browser(alice: Client) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.change(shown, 1, "topic made", at_ms=1_766_134_800_000)  # 2025-12-19 09:00 UTC
    alice.cookies.load({"samsa-zone": "Asia/Kolkata", "samsa-times": "local"})

    page = alice.get("/").content.decode()

    assert "2025-12-19 14:30:00+05:30 Asia/Kolkata · 2025-12-19 09:00:00 UTC" in page
    assert "Asia/Kolkata" in page
