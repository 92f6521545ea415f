"""Reads the title, the headline and the forms of a page, as a browser sends them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass(slots=True, kw_only=True)
class Form:
    action: str
    method: str
    # What a browser sends, in its order; buttons are apart.
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """One parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.title = ""
        self.headline = ""
        self.forms: list[Form] = []
        # The element whose text is read.
        self._reading = ""
        self._text: list[str] = []
        self._is_in_form = False
        self._name = ""
        self._options: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("title", "h1", "textarea"):
            self._reading, self._text, self._name = tag, [], given.get("name", "")
        elif tag == "form":
            method = given.get("method", "get").lower()
            self.forms.append(Form(action=given.get("action", ""), method=method))
            self._is_in_form = True
        elif tag == "select":
            self._name, self._options = given.get("name", ""), []
        elif tag == "option":
            self._options.append((given.get("value", ""), "selected" in given))
        elif self._is_in_form and given.get("name"):
            self._take(tag, given)

    def _take(self, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "submit" if tag == "button" else "text")
        name, value = given["name"], given.get("value", "")
        if tag == "button" or kind in ("submit", "image"):
            self.forms[-1].buttons.append((name, value))
        elif kind in ("checkbox", "radio"):
            if "checked" in given:
                self.forms[-1].fields.append((name, given.get("value", "on")))
        elif tag == "input" and kind != "file":
            self.forms[-1].fields.append((name, value))

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self._text).split())
        if tag == "form":
            self._is_in_form = False
        elif tag == "select" and self._is_in_form and self._name:
            chosen = [value for value, is_chosen in self._options if is_chosen] or [
                value for value, _ in self._options[:1]
            ]
            self.forms[-1].fields += [(self._name, value) for value in chosen]
        elif tag == self._reading:
            if tag == "title":
                self.title = self.title or text
            elif tag == "h1":
                self.headline = self.headline or text
            elif self._is_in_form and self._name:
                self.forms[-1].fields.append((self._name, "".join(self._text)))
            self._reading = ""

    def handle_data(self, data: str) -> None:
        if self._reading:
            self._text.append(data)
