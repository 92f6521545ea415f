"""A visitor of the console in a real browser, who uses the mouse or nothing but the keyboard.

Both kinds read alike in a test: `press`, `write`, `choose`. What the browser complains of, from a
violated content policy to an error of a script, is kept, and a test asserts that there is none.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Response, expect

from tests.browser import accessibility

# What `expect` waits at most; its own five seconds are for machines that do nothing else.
PATIENCE_MS: Final = 20_000
expect.set_options(timeout=PATIENCE_MS)

Role = Literal["button", "link", "checkbox", "radio", "tab", "option", "searchbox", "combobox"]
Name = str | re.Pattern[str]

# What the collector tells arrives seconds later, and a broker takes some to start.
LONG_PATIENCE_MS: Final = 60_000
# More stops of the Tab key than the longest page that is walked has.
MAX_TABS: Final = 250
WIDTH: Final = 1280
HEIGHT: Final = 860
# Runs before any script of a page; a policy forbids none of it, for it is the browser's own.
TELL_VIOLATIONS: Final = """addEventListener("securitypolicyviolation", (event) =>
  tellViolation(`${event.violatedDirective} forbids ${event.blockedURI} at ${location}`))"""
HAS_FOCUS: Final = "element => document.activeElement === element"
# A group of radio buttons is one stop of the Tab key.
HAS_SIBLING_FOCUS: Final = "element => document.activeElement?.name === element.name"
# No errors of a script: an answer of 4xx that a test asked for, and a request that htmx gave up
# for a newer one, as the search box does at every key.
NO_ERRORS: Final = ("Failed to load resource", "htmx:afterRequest", "htmx:sendAbort")


class Visitor:
    """One tab, used with the mouse."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))

    def open(self, path: str) -> Response:
        """Open an address as a bookmark does."""
        answer = self.page.goto(self.base + path)
        assert answer is not None
        return answer

    def press(self, role: Role, name: Name, *, within: Locator | None = None) -> None:
        self._press(self.find(role, name, within=within))

    def write(self, label: Name, text: str) -> None:
        """Replace what a field holds."""
        self._write(self._labelled(label), text)

    def choose(self, label: Name, option: str) -> None:
        """Choose of a list that drops down."""
        self._choose(self._labelled(label), option)

    def find(self, role: Role, name: Name, *, within: Locator | None = None) -> Locator:
        place = within if within is not None else self.page
        return place.get_by_role(role, name=name).first

    def sees(self, text: Name, *, within_ms: int = PATIENCE_MS) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=within_ms)

    def look(self) -> None:
        """Note what would keep somebody from using the page as it is now."""
        found = accessibility.complaints(self.page)
        self.complaints += [f"{self.page.url}: {complaint}" for complaint in found]

    def shows(self, place: str, text: str) -> None:
        """Wait until an element says just this, which the page finds out by itself."""
        expect(self.page.locator(place)).to_have_text(text, timeout=LONG_PATIENCE_MS)

    def search(self, name: str) -> None:
        """Open what is called so by the search box, which hears keys wherever one is."""
        keyboard = self.page.keyboard
        keyboard.press("Control+k")
        keyboard.type(name)
        expect(self.page.locator("#found a").first).to_contain_text(name)
        keyboard.press("Enter")
        self.sees(name)

    def is_at(self, path: Name) -> None:
        pattern = path if isinstance(path, re.Pattern) else re.compile(re.escape(path))
        self.page.wait_for_url(pattern)

    def _labelled(self, label: Name) -> Locator:
        return self.page.get_by_label(label, exact=True).first

    def _press(self, target: Locator) -> None:
        target.click()

    def _write(self, target: Locator, text: str) -> None:
        target.fill(text)

    def _choose(self, target: Locator, option: str) -> None:
        target.select_option(label=option)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(NO_ERRORS):
            self.complaints.append(f"console: {message.text}")


class KeyboardVisitor(Visitor):
    """One tab, used by the keyboard alone: nothing is reached but by pressing Tab.

    What is pressed could be clicked as well: nothing lies over it, and it stays in its place.
    """

    def _press(self, target: Locator) -> None:
        # Playwright moves the mouse there and lets the page see no click.
        target.click(trial=True)
        kind = target.evaluate("element => element.type ?? ''")
        if kind == "radio":
            self._choose_radio(target)
            return
        self._go_to(target)
        self.page.keyboard.press("Space" if kind == "checkbox" else "Enter")

    def _write(self, target: Locator, text: str) -> None:
        self._go_to(target)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)

    def _choose(self, target: Locator, option: str) -> None:
        self._go_to(target)
        # A list that drops down goes to the option whose beginning is typed.
        self.page.keyboard.type(option)
        expect(target.locator("option:checked")).to_have_text(option)

    def _choose_radio(self, target: Locator) -> None:
        """Press Tab until one of its kind has the focus, then an arrow until it is chosen."""
        expect(target).to_be_visible()
        for _ in range(MAX_TABS):
            if target.is_checked():
                return
            key = "ArrowDown" if target.evaluate(HAS_SIBLING_FOCUS) else "Tab"
            self.page.keyboard.press(key)
        raise AssertionError(f"{MAX_TABS} keys did not choose {target}")

    def _go_to(self, target: Locator) -> None:
        """Press Tab until the target has the focus."""
        expect(target).to_be_visible()
        for _ in range(MAX_TABS):
            if target.evaluate(HAS_FOCUS):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{MAX_TABS} times Tab did not reach {target}")


@contextmanager
def visiting(
    browser: Browser,
    base: str,
    *,
    by_keyboard: bool = False,
    theme: Literal["light", "dark"] = "light",
    width: int = WIDTH,
) -> Iterator[Visitor]:
    """Open a tab of a browser that remembers nothing."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": HEIGHT}}
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce", **options)
    violations: list[str] = []
    context.expose_function("tellViolation", lambda told: violations.append(told))  # noqa: PLW0108 - it keeps an attribute on it
    context.add_init_script(TELL_VIOLATIONS)
    kind = KeyboardVisitor if by_keyboard else Visitor
    visitor = kind(context.new_page(), base)
    visitor.complaints = violations
    try:
        yield visitor
    finally:
        context.close()
