"""Reads the markup of a page into elements, as far as finding words in them needs it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

# Elements that have no end.
VOID: Final = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"})


@dataclass(slots=True, kw_only=True)
class Element:
    tag: str
    attributes: Mapping[str, str]
    content: list["Element | str"] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        """Return all words within, with single spaces."""
        return " ".join(" ".join(self._words()).split())

    def all(self, tag: str = "", *, has_class: str = "", id_: str = "") -> list["Element"]:
        """Return the elements below this one that have these features, in their order."""
        return [
            one
            for one in self._below()
            if (not tag or one.tag == tag)
            and (not has_class or has_class in one.classes)
            and (not id_ or one.attributes.get("id") == id_)
        ]

    def first(self, tag: str = "", *, has_class: str = "", id_: str = "") -> "Element | None":
        return next(iter(self.all(tag, has_class=has_class, id_=id_)), None)

    def _words(self) -> Iterator[str]:
        for one in self.content:
            if isinstance(one, str):
                yield one
            else:
                yield from one._words()  # noqa: SLF001 - an element of the same page

    def _below(self) -> Iterator["Element"]:
        for one in self.content:
            if isinstance(one, Element):
                yield one
                yield from one._below()  # noqa: SLF001 - as above


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element(tag="", attributes={})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag=tag, attributes={name: value or "" for name, value in attrs})
        self._open[-1].content.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].content.append(data)


def read(page: str) -> Element:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.root
