"""What a newcomer does in the first hour, step by step: each begins on the page that the last one
ended on, and ends with something seen there.

The steps know a visitor and not how that one moves, so that the same walk is taken with the mouse
and by the keyboard alone.
"""

from dataclasses import dataclass

from tests.browser.home import NEW_PASSWORD
from tests.browser.visitor import Visitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    name: str
    password: str
    visitor: Visitor


def log_in(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.open("/topics")
    visitor.is_at("/login?next=/topics")
    visitor.write("User name", newcomer.name)
    visitor.write("Password", newcomer.password)
    visitor.press("button", "Sign in")
    visitor.is_at("/password")


def change_the_password(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.write("Present password", newcomer.password)
    visitor.write("New password", NEW_PASSWORD)
    visitor.write("New password, once more", NEW_PASSWORD)
    visitor.press("button", "Change password")
    visitor.sees("Your password is changed.")


def read_the_audit(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.press("link", "Changes")
    visitor.is_at("/changes")


STEPS = (log_in, change_the_password, read_the_audit)
