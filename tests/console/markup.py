"""What the markup of a page may never hold, whatever the data in it: found by parsing it."""

from html.parser import HTMLParser
from typing import Final

# A script of a page is a file of ours; data for scripts is no script.
DATA_TYPES: Final = ("application/json",)
LINKS: Final = ("href", "src", "action", "formaction", "hx-get", "hx-post", "sse-connect")
FORBIDDEN: Final = ("iframe", "object", "embed", "style", "base")


class Markup(HTMLParser):
    """`found` names everything in a page that could run a script or change how it looks."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        is_foreign_script = tag == "script" and not is_ours(given)
        has_code = any(name.startswith(("on", "hx-on")) or name == "style" for name in given)
        leads_away = any(not is_local(given[name]) for name in LINKS if name in given)
        if tag in FORBIDDEN or is_foreign_script or has_code or leads_away:
            line, _ = self.getpos()
            self.found.append(f"line {line}: <{tag} {given}>")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def is_ours(script: dict[str, str]) -> bool:
    return script.get("type") in DATA_TYPES or script.get("src", "").startswith("/static/")


def is_local(link: str) -> bool:
    """Tell whether a link stays on this site: a path, a query or a place within the page."""
    return (link.startswith(("/", "?", "#")) and not link.startswith(("//", "/\\"))) or link == ""
