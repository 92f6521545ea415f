"""What a newcomer does in the first hour, step by step: each begins on the page that the last one
ended on, and ends with something seen there.

The steps know a visitor and not whether it uses the mouse or the keyboard.
"""

import json
import re
from dataclasses import dataclass
from typing import Protocol

from playwright.sync_api import expect

from tests.browser.group import consume, produce
from tests.browser.home import NEW_PASSWORD
from tests.browser.visitor import LONG_PATIENCE_MS, Visitor


class Guest(Protocol):
    """A user with an initial password."""

    @property
    def name(self) -> str: ...
    @property
    def password(self) -> str: ...
    @property
    def visitor(self) -> Visitor: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    name: str
    password: str
    visitor: Visitor
    # The address of the brokers, for programs beside the browser.
    bootstrap: str

    @property
    def topic(self) -> str:
        return f"{self.name}s-orders"

    @property
    def group(self) -> str:
        return f"{self.name}s-billing"


def log_in(guest: Guest) -> None:
    visitor = guest.visitor
    visitor.open("/topics")
    visitor.is_at("/login?next=/topics")
    visitor.write("User name", guest.name)
    visitor.write("Password", guest.password)
    visitor.press("button", "Sign in")
    visitor.is_at("/password")


def change_the_password(guest: Guest) -> None:
    visitor = guest.visitor
    visitor.write("Current password", guest.password)
    visitor.write("New password", NEW_PASSWORD)
    visitor.write("New password, once more", NEW_PASSWORD)
    visitor.press("button", "Change password")
    visitor.sees("Your password is changed.")


def create_a_topic(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.press("link", "Topics")
    visitor.press("link", "Create topic")
    visitor.write("Name", newcomer.topic)
    visitor.write("Partitions", "2")
    visitor.press("button", "Preview")
    visitor.sees("nothing is changed yet")
    visitor.look()
    visitor.press("button", "Apply this plan")
    visitor.sees("The plan was applied")


def find_the_topic_by_the_search_box(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.search(newcomer.topic)
    visitor.is_at(f"/topics/{newcomer.topic}")
    visitor.sees("2 partitions")


def produce_three_records(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    for drink in ("tea", "coffee", "water"):
        visitor.press("link", "Messages")
        visitor.press("link", "Produce")
        visitor.choose("Type of the key", "text")
        visitor.write("Key", f"order of {drink}")
        visitor.write("Value", json.dumps({"drink": drink, "cups": len(drink)}))
        visitor.press("button", "Produce")
        visitor.sees(f"order of {drink}")


def find_one_by_search(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.press("link", "Messages")
    visitor.choose(re.compile("^Show"), "Oldest first")
    visitor.write(re.compile("^Filter"), "value.cups = 6")
    visitor.press("button", "Read")
    visitor.sees("order of coffee")
    visitor.sees(re.compile("^Complete"))
    expect(visitor.page.get_by_text("order of tea")).to_have_count(0)


def watch_lag_grow_and_shrink(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    # What the browser has produced.
    consume(newcomer.bootstrap, newcomer.topic, newcomer.group, 3)
    visitor.press("link", "Groups")
    # The collector tells the list, which renews itself.
    visitor.sees(newcomer.group)
    visitor.press("link", newcomer.group)
    visitor.shows("#group-lag", "0")
    # From here on nobody touches the page: it renews itself.
    produce(newcomer.bootstrap, newcomer.topic, 25)
    visitor.shows("#group-lag", "25")
    consume(newcomer.bootstrap, newcomer.topic, newcomer.group, 25)
    visitor.shows("#group-lag", "0")


def reset_its_offsets(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.press("link", "Reset offsets")
    visitor.press("radio", re.compile("^Earliest"))
    visitor.press("button", "Preview")
    visitor.sees("nothing is changed yet")
    visitor.look()
    visitor.sees("2 of 2, 1 topic")
    visitor.press("button", "Apply this plan")
    visitor.sees(f"Offsets of group {newcomer.group} were reset")
    visitor.shows("#group-lag", "28")


def add_partitions(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.search(newcomer.topic)
    visitor.press("link", "Add partitions")
    visitor.sees("Which keys move")
    visitor.look()
    visitor.write("Partitions in all", "4")
    visitor.press("button", "Preview")
    visitor.sees("About 50% of the keys")
    visitor.look()
    visitor.press("button", "Apply this plan")
    visitor.sees("The plan was applied")


def restart_a_broker(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.press("link", "Brokers")
    visitor.press("link", re.compile("^2$"))
    visitor.press("link", "Restart")
    visitor.sees("What follows")
    visitor.look()
    visitor.press("button", "Restart broker 2")
    visitor.sees("Done", within_ms=LONG_PATIENCE_MS)
    visitor.sees("Serving", within_ms=LONG_PATIENCE_MS)


def delete_the_topic(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.search(newcomer.topic)
    visitor.sees("4 partitions")
    visitor.press("link", "Delete")
    visitor.write(re.compile("^Type"), newcomer.topic)
    visitor.press("button", "Preview")
    visitor.sees("What follows")
    visitor.look()
    visitor.press("button", "Apply this plan")
    visitor.sees("The plan was applied")


def read_the_audit(newcomer: Newcomer) -> None:
    visitor = newcomer.visitor
    visitor.press("link", "Changes")
    visitor.is_at("/changes")
    visitor.write("A part of the object's name", newcomer.topic)
    visitor.press("button", "Filter")
    changes = visitor.page.get_by_role("region", name="Changes")
    for kind in ("create topic", "add partitions", "delete topic"):
        expect(changes.get_by_text(kind).first).to_be_visible()
    expect(changes.get_by_text(f"User:{newcomer.name}").first).to_be_visible()


STEPS = (
    log_in,
    change_the_password,
    create_a_topic,
    find_the_topic_by_the_search_box,
    produce_three_records,
    find_one_by_search,
    watch_lag_grow_and_shrink,
    reset_its_offsets,
    add_partitions,
    restart_a_broker,
    delete_the_topic,
    read_the_audit,
)
