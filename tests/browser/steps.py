"""Takes the steps of a walk one by one, and shows where one of them failed."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from tests.browser.visitor import Visitor

Walker = TypeVar("Walker")

# Of a page, in the message of a failure.
SHOWN_CHARS = 6000


def take(
    steps: Iterable[Callable[[Walker], None]], walker: Walker, visitor: Visitor, pictures: Path
) -> str:
    """Take every step; return all that the pages held."""
    held = ""
    for step in steps:
        try:
            step(walker)
        # Of whatever kind: it is raised again, with what the page showed.
        except Exception as error:
            picture = pictures / f"{step.__name__}.png"
            visitor.page.screenshot(path=picture)
            shown = visitor.page.locator("body").inner_text()
            raise AssertionError(
                f"{step.__name__} failed at {visitor.page.url}: {error}\n"
                f"a picture is in {picture}; the page said:\n{shown[:SHOWN_CHARS]}"
            ) from error
        visitor.look()
        held += visitor.page.content()
    assert visitor.complaints == []
    return held
