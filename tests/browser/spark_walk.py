"""How a newcomer has Spark write a topic as Parquet files, step by step, from the console alone.

Spark is not installed when the walk begins: the form says so, and leads to the button.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import expect
from pyarrow import parquet

from tests.browser.connect_walk import TOPIC, end_of_topic, help_of, is_state
from tests.browser.visitor import LONG_PATIENCE_MS, Visitor

# Enough for some batches, and made within two seconds.
RECORDS: Final = 2000
RATE: Final = 1000
TABLE: Final = "lake/orders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """The steps of a user who builds a table with the Spark sink."""

    visitor: Visitor
    password: str
    bootstrap: str
    # Where the home keeps what connectors write.
    files: Path
    # Wait until something is so: the fact, and what it is.
    wait: Callable[[Callable[[], bool], str], None]

    @property
    def name(self) -> str:
        return "admin"

    def orders(self) -> list[int]:
        """Return the numbers of all orders that the table has."""
        found = [path for path in (self.files / TABLE).glob("*.parquet") if path.is_file()]
        return [
            number for path in found for number in parquet.read_table(path)["orderid"].to_pylist()
        ]


def find_that_spark_is_missing(builder: Builder) -> None:
    visitor = builder.visitor
    visitor.press("link", "Connect")
    visitor.press("link", "Create connector")
    visitor.sees("Cannot run here")
    visitor.look()
    choose_the_sink(visitor)
    visitor.sees("Cannot run here")
    visitor.press("button", "Preview")
    visitor.sees("Install its packages first.")
    visitor.look()
    visitor.press("link", "install spark here")
    visitor.is_at("/extras")


def install_it(builder: Builder) -> None:
    visitor = builder.visitor
    visitor.press("button", "Install spark")
    visitor.sees(re.compile("^(Waiting|Installing)$"))
    visitor.look()
    # Nobody touches the page: it renews itself.
    visitor.sees("Connectors can use it now", within_ms=LONG_PATIENCE_MS)
    visitor.look()
    visitor.press("link", "create one")


def create_a_source(builder: Builder) -> None:
    visitor = builder.visitor
    visitor.press("link", "Made-up records")
    visitor.write(re.compile("^Connector name"), "made-up")
    visitor.write(re.compile("^Topic"), TOPIC)
    visitor.write(re.compile("^Records per second"), str(RATE))
    unfold(visitor, "iterations")
    visitor.write(re.compile("^Iterations"), str(RECORDS))
    visitor.press("button", "Preview")
    visitor.sees("It will write into")
    visitor.press("button", "Create")
    visitor.sees("made-up is created")
    is_state(builder, "Running")


def create_a_sink(builder: Builder) -> None:
    visitor = builder.visitor
    visitor.press("link", "Connect")
    visitor.press("link", "Create connector")
    choose_the_sink(visitor)
    expect(visitor.page.get_by_text("Cannot run here")).to_have_count(0)
    visitor.write(re.compile("^Connector name"), "to-lake")
    visitor.write("Topics topics", TOPIC)
    visitor.write(re.compile(r"table\.path"), f"../{TABLE}")
    unfold(visitor, "batch.max.wait.ms")
    visitor.write(re.compile(r"batch\.max\.wait\.ms"), "500")
    # What is typed is checked meanwhile.
    expect(help_of(builder, "table.path")).to_contain_text("parts begin with no dot")
    visitor.write(re.compile(r"table\.path"), TABLE)
    visitor.press("button", "Preview")
    visitor.sees("It will read")
    visitor.look()
    visitor.press("button", "Create")
    visitor.sees("to-lake is created")
    is_state(builder, "Running")


def count_the_rows(builder: Builder) -> None:
    visitor = builder.visitor
    builder.wait(lambda: len(builder.orders()) >= RECORDS, f"{RECORDS} rows in {TABLE}")
    assert end_of_topic(builder.bootstrap) == RECORDS
    assert sorted(builder.orders()) == list(range(RECORDS))
    written = visitor.page.get_by_role("cell", name=f"{RECORDS:,}", exact=True)
    # Records that were read, and rows that were written.
    expect(written).to_have_count(2, timeout=LONG_PATIENCE_MS)
    expect(visitor.page.get_by_role("link", name="0 records")).to_be_visible(
        timeout=LONG_PATIENCE_MS
    )


def find_where_the_files_are(builder: Builder) -> None:
    visitor = builder.visitor
    visitor.press("link", "Log")
    visitor.sees(f"wrote batch 0 into {builder.files / TABLE}")


def find_both_running(builder: Builder) -> None:
    visitor = builder.visitor
    visitor.press("link", "Connect")
    visitor.sees("2 connectors")
    expect(visitor.page.get_by_text("Running", exact=True)).to_have_count(2)


def choose_the_sink(visitor: Visitor) -> None:
    visitor.page.locator('main a[href*="samsa.spark.sink"]').click()


def unfold(visitor: Visitor, key: str) -> None:
    """Open the part of a form that a field is folded into."""
    visitor.page.locator("details", has=visitor.page.locator(f'[id="id-{key}"]')).locator(
        "summary"
    ).click()


STEPS: Final = (
    find_that_spark_is_missing,
    install_it,
    create_a_source,
    create_a_sink,
    count_the_rows,
    find_where_the_files_are,
    find_both_running,
)
