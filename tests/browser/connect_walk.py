"""How a newcomer copies made-up records into PostgreSQL, step by step, from the console alone.

Somebody else owns the database, and changes it under the connector: what that breaks is shown, is
mended in the form, and goes on.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import Locator, expect
from psycopg import sql

from tests.browser.home import NEW_PASSWORD
from tests.browser.visitor import LONG_PATIENCE_MS, Visitor
from tests.browser.walk import Guest

TOPIC: Final = "orders"
# Created beforehand by the owner of the database.
TABLE: Final = (
    "CREATE TABLE orders (ordertime bigint, orderid bigint, itemid text,"
    " orderunits double precision, address jsonb)"
)
# Each shows that rows go on.
MORE_ROWS: Final = 20
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Copier:
    visitor: Visitor
    password: str
    bootstrap: str
    database: psycopg.Connection[Any]
    # Wait until something is so: the fact, and what it is.
    wait: Callable[[Callable[[], bool], str], None]

    @property
    def name(self) -> str:
        return "admin"

    @property
    def database_port(self) -> int:
        return self.database.info.port

    def rows(self, table: str, what: str = "*") -> int:
        """Return how many rows a table has."""
        query = sql.SQL("SELECT count({}) FROM {}").format(sql.SQL(what), sql.Identifier(table))
        row = self.database.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    def wait_for_more(self, table: str) -> None:
        wanted = self.rows(table) + MORE_ROWS
        self.wait(lambda: self.rows(table) >= wanted, f"{MORE_ROWS} more rows in {table}")


def create_a_source(copier: Copier) -> None:
    visitor = copier.visitor
    visitor.press("link", "Connect")
    visitor.sees("No connectors yet")
    visitor.look()
    visitor.press("link", "Create connector")
    visitor.look()
    visitor.press("link", "Made-up records")
    visitor.look()
    visitor.write(re.compile("^Connector name"), "made-up")
    visitor.write(re.compile("^Topic"), TOPIC)
    visitor.write(re.compile("^Records per second"), "50")
    visitor.press("button", "Preview")
    visitor.sees("nothing is changed yet")
    visitor.sees("It will write into")
    visitor.look()
    visitor.press("button", "Create")
    visitor.sees("made-up is created")
    is_state(copier, "Running")


def look_at_its_records(copier: Copier) -> None:
    visitor = copier.visitor
    visitor.search(TOPIC)
    visitor.is_at(f"/topics/{TOPIC}")
    visitor.press("link", "Messages")
    visitor.sees(re.compile("itemid"))


def have_a_broken_sink_refused(copier: Copier) -> None:
    visitor = copier.visitor
    copier.database.execute(TABLE)
    visitor.press("link", "Connect")
    visitor.press("link", "Create connector")
    visitor.press("link", "Rows into PostgreSQL")
    visitor.write(re.compile("^Connector name"), "rows")
    visitor.write("Topics topics", TOPIC)
    visitor.write(re.compile("^Connection URL"), f"127.0.0.1:{copier.database_port}")
    visitor.write(re.compile("^Connection user"), "samsa")
    visitor.write(re.compile("^Connection password"), NEW_PASSWORD)
    visitor.write(re.compile("^Tasks max"), "many")
    visitor.press("button", "Preview")
    visitor.sees("2 values are wrong or missing")
    expect(help_of(copier, "connection.url")).to_contain_text("write jdbc:postgresql://host:port")
    expect(help_of(copier, "tasks.max")).to_contain_text("Not a number of type INT")
    visitor.look()


def mend_it_and_create_it(copier: Copier) -> None:
    visitor = copier.visitor
    address = f"jdbc:postgresql://127.0.0.1:{copier.database_port}/{copier.database.info.dbname}"
    visitor.write(re.compile("^Connection URL"), address)
    visitor.write(re.compile("^Tasks max"), "1")
    visitor.choose(re.compile("^Insert mode"), "upsert")
    visitor.press("button", "Preview")
    expect(help_of(copier, "pk.mode")).to_contain_text("insert.mode=upsert needs a primary key")
    visitor.choose(re.compile("^Insert mode"), "insert")
    visitor.press("button", "Preview")
    visitor.sees("It will read")
    visitor.look()
    visitor.press("button", "Create")
    visitor.sees("rows is created")
    is_state(copier, "Running")
    copier.wait_for_more("orders")


def see_why_it_failed(copier: Copier) -> None:
    visitor = copier.visitor
    copier.database.execute("ALTER TABLE orders RENAME TO kept_orders")
    # Nobody touches the page: it renews itself.
    is_state(copier, "Failed")
    visitor.sees("there is no table orders: make it, or set auto.create=true")
    expect(visitor.page.locator("pre.trace")).to_contain_text("Traceback")
    visitor.look()
    visitor.press("link", "Log")
    visitor.sees(re.compile("task failed: .* there is no table orders"))
    visitor.look()
    visitor.press("link", "Connect")
    visitor.sees("2 connectors, 1 failed")
    visitor.look()


def mend_its_config(copier: Copier) -> None:
    visitor = copier.visitor
    visitor.press("link", "rows")
    visitor.press("link", "Edit")
    visitor.page.locator("summary", has_text="Tables").click()
    visitor.write(re.compile("^Table name format"), "kept_orders")
    expect(visitor.page.locator("#json")).to_have_value(re.compile("kept_orders"))
    visitor.look()
    visitor.press("button", "Preview")
    visitor.sees("What changes")
    visitor.sees("kept_orders")
    visitor.look()
    visitor.press("button", "Change it")
    visitor.sees("The config of rows is changed")
    is_state(copier, "Running")
    copier.wait_for_more("kept_orders")


def count_the_rows(copier: Copier) -> None:
    visitor = copier.visitor
    visitor.press("link", "Connect")
    visitor.press("link", "made-up")
    visitor.press("button", "Pause")
    is_state(copier, "Paused")
    copier.wait(
        lambda: copier.rows("kept_orders") == end_of_topic(copier.bootstrap), "all of its rows"
    )
    assert copier.rows("kept_orders") == copier.rows("kept_orders", "DISTINCT orderid")


def is_state(guest: Guest, word: str) -> None:
    """Wait until the page says of the connector that it is so."""
    mark = guest.visitor.page.locator(".title .st")
    expect(mark).to_have_text(word, timeout=LONG_PATIENCE_MS)


def help_of(guest: Guest, key: str) -> Locator:
    return guest.visitor.page.locator(f'[id="help-{key}"]')


def end_of_topic(bootstrap: str) -> int:
    """Return how many records the topic has, which nobody deletes."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counter"})
    try:
        found = consumer.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions
        return sum(
            consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=PATIENCE_S)[1]
            for number in found
        )
    finally:
        consumer.close()


STEPS: Final = (
    create_a_source,
    look_at_its_records,
    have_a_broken_sink_refused,
    mend_it_and_create_it,
    see_why_it_failed,
    mend_its_config,
    count_the_rows,
)
