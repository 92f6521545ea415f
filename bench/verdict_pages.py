"""Signs in to the console, and reads what its pages say of consumer groups, as a user does.

Reads the list of groups, each group's page, and what Overview and the navigation count as needing
attention. Knows the marks of pages (a dot with a colour and a word), and no rule behind them.
"""

import re
import secrets
from dataclasses import dataclass
from http import HTTPStatus
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

from bench.markup import Element, read

USER: Final = "admin"
PAGE_SECONDS: Final = 30
COLOURS: Final = ("ok", "warn", "bad", "stale")
ALARMS: Final = ("warn", "bad")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A verdict on a page. The words are all that stands beside it."""

    colour: str
    verdict: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What all pages say of one group; None where a page does not have it.

    `parts` are the topics and partitions on the group's own page.
    """

    listed: Mark | None
    own: Mark | None
    in_need: Mark | None
    parts: tuple[Mark, ...] = ()

    @property
    def marks(self) -> tuple[Mark, ...]:
        found = (self.listed, self.own, self.in_need)
        return tuple(mark for mark in found if mark is not None)

    @property
    def is_green(self) -> bool:
        return any(mark.colour == "ok" for mark in self.marks)

    @property
    def is_alarm(self) -> bool:
        """Tell whether it is counted as needing attention."""
        return any(mark.colour in ALARMS for mark in self.marks)

    @property
    def verdict(self) -> str:
        mark = self.own or self.listed
        return "absent" if mark is None else mark.verdict

    @property
    def words(self) -> str:
        mark = self.own or self.listed
        return "" if mark is None else mark.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Sights:
    """One turn through the pages. `badge` is the number beside Groups in the navigation."""

    groups: dict[str, Sight]
    badge: int

    @property
    def alarms(self) -> int:
        """Return how many groups the list marks as needing attention."""
        listed = (sight.listed for sight in self.groups.values())
        return sum(mark is not None and mark.colour in ALARMS for mark in listed)


class ConsolePages:
    """A browser without a screen, signed in as the first user of a home."""

    def __init__(self, address: str, home: Path) -> None:
        self._address = address
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        # The console takes forms only from its own pages.
        self._opener.addheaders = [("Referer", address)]
        password = (home / "secrets" / "admin-password").read_text(encoding="utf-8").strip()
        self._send("/login", {"username": USER, "password": password, "next": "/"})
        # The console opens once the password of the first start has been changed.
        own = secrets.token_urlsafe(24)
        change = {"username": USER, "former": password, "new": own, "again": own}
        self._send("/password", change)

    def look(self) -> Sights:
        overview, groups = self._page("/"), self._page("/groups")
        needs = dict(needs_of(overview))
        listed = dict(rows_of(groups))
        seen = {}
        for name in sorted({*listed, *needs}):
            page = self._group(name)
            seen[name] = Sight(
                listed=listed.get(name),
                own=None if page is None else verdict_of(page),
                in_need=needs.get(name),
                parts=() if page is None else parts_of(page),
            )
        return Sights(groups=seen, badge=badge_of(groups))

    def _group(self, name: str) -> Element | None:
        try:
            return self._page(f"/group?name={quote(name, safe='')}")
        except HTTPError as refused:
            if refused.code != HTTPStatus.NOT_FOUND:
                raise
            return None

    def _page(self, path: str) -> Element:
        return read(self._text(path))

    def _send(self, path: str, fields: dict[str, str]) -> None:
        """Fill in the form of a page, and send it."""
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self._text(path), re.ASCII)
        assert token is not None, f"{path} has no form"
        body = urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode()
        self._text(path, body)

    def _text(self, path: str, body: bytes | None = None) -> str:
        with self._opener.open(self._address + path, body, timeout=PAGE_SECONDS) as answer:
            text: str = answer.read().decode()
        return text


# --- what is where on a page ------------------------------------------------------------------


def needs_of(overview: Element) -> list[tuple[str, Mark]]:
    """Return the groups that Overview lists as needing attention."""
    found = []
    for entry in overview.all(has_class="need"):
        name = group_linked(entry)
        mark = mark_of(entry)
        if name and mark is not None:
            found.append((name, mark))
    return found


def rows_of(groups: Element) -> list[tuple[str, Mark]]:
    """Return the rows of the list of groups."""
    found = []
    for row in rows(groups):
        name, mark = group_linked(row), mark_of(row)
        if name and mark is not None:
            found.append((name, mark))
    return found


def parts_of(group: Element) -> tuple[Mark, ...]:
    """Return the verdicts in the tables of a group's page."""
    return tuple(mark for row in rows(group) if (mark := mark_of(row)) is not None)


def rows(page: Element) -> list[Element]:
    return [row for body in page.all("tbody") for row in body.all("tr")]


def verdict_of(group: Element) -> Mark | None:
    """Return the verdict at the top of a group's page."""
    card = group.first(id_="verdict")
    return None if card is None else mark_of(card)


def badge_of(page: Element) -> int:
    rail = page.first(id_="rail-groups")
    count = None if rail is None else rail.first(has_class="bad")
    digits = "" if count is None else re.sub(r"\D", "", count.text)
    return int(digits or 0)


def mark_of(element: Element) -> Mark | None:
    """Return the first dot within an element, with every word beside it, also on hovering."""
    dot = element.first(has_class="st")
    if dot is None:
        return None
    colour = next((name for name in COLOURS if name in dot.classes), "")
    said = dot.attributes.get("title", "")
    return Mark(colour=colour, verdict=dot.text, words=f"{element.text} {said}".strip())


def group_linked(element: Element) -> str:
    """Return the name of the group that an element links to."""
    for link in element.all("a"):
        target = urlsplit(link.attributes.get("href", ""))
        if target.path == "/group":
            return parse_qs(target.query).get("name", [""])[0]
    return ""
