"""Reads a browser's preferences: the theme of its pages, and the time zone of all times.

Stored in cookies, because they belong to a browser and not to an account: the same person uses a
dark wall screen and a laptop in another zone. The page's script sends the browser's zone in a
cookie; without the script, times are in UTC.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

THEME_COOKIE: Final = "samsa-theme"
TIMES_COOKIE: Final = "samsa-times"
# Written by console/static/console/preferences.js.
ZONE_COOKIE: Final = "samsa-zone"
# Without the cookie, the third choice applies: the theme of the system.
THEMES: Final = frozenset({"light", "dark"})
LOCAL: Final = "local"
# A year, since this is a preference and not a session.
COOKIE_SECONDS: Final = 365 * 24 * 3600
# The longest name of the zone database has 32 characters. Other cookie values are no zones, and are
# not looked up as files.
ZONE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
MAX_ZONE_NAME: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    theme: str = ""  # "": the theme of the system
    # For the times on a page, and those typed into a form.
    zone: tzinfo = UTC
    zone_name: str = "UTC"
    # The zone that the browser reports; "" for none or an unknown one.
    browser_zone: str = ""

    @property
    def is_local(self) -> bool:
        return self.zone_name != "UTC"


def preferences_of(request: HttpRequest) -> Preferences:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    browser = request.COOKIES.get(ZONE_COOKIE, "")
    browser_zone = zone_named(browser)
    wants_local = request.COOKIES.get(TIMES_COOKIE) == LOCAL and browser_zone is not None
    return Preferences(
        theme=theme if theme in THEMES else "",
        zone=browser_zone if wants_local and browser_zone is not None else UTC,
        zone_name=browser if wants_local else "UTC",
        browser_zone=browser if browser_zone is not None else "",
    )


def zone_named(name: str) -> ZoneInfo | None:
    """Return a zone of the zone database; None for an unknown name."""
    if len(name) > MAX_ZONE_NAME or not ZONE_NAME.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # A directory of the database, such as Europe, is an OSError.
        return None


class PreferredZone:
    """Makes Django show and parse all times of a request in the browser's preferred zone."""

    # As in gateway.middleware: Django would move it to another thread and back.
    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with timezone.override(preferences_of(request).zone):
            return self._get_response(request)


def context(request: HttpRequest) -> dict[str, Preferences]:
    """Give every template the preferences, for the frame."""
    return {"preferences": preferences_of(request)}
