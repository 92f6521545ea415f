"""Defines what the page of a plan shows, before it is applied and after. Values only."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokers.quantities import in_words
from console.queries.frame import Frame

CONFLICT: Final = 409
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    text: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A line with a pill. `mark` is the CSS class of both."""

    mark: str
    word: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    name: str
    value: str
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    css: str = ""
    unit: str = ""

    @property
    def is_number(self) -> bool:
        return self.css.startswith("num")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    text: str
    more: str = ""
    address: str = ""
    is_faint: bool = False
    is_strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows before and after; the first cell of a row is its header."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    # Shown in place of the table if it has no rows.
    empty: str = ""

    @property
    def lines(self) -> Iterator[Iterator[tuple[Column, Cell]]]:
        """Yield each row, with the column of each cell."""
        return (zip(self.columns, row, strict=True) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list of things, with a sentence on each."""

    title: str
    items: tuple[tuple[str, str], ...]
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """A sentence; `mark` and `word` are those of its pill, if it has one.

    `names` are some of the objects that it is about, and `more` counts the others.
    """

    sentence: str
    mark: str = ""
    word: str = ""
    names: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a plan, with what it shows."""

    sentence: str = ""
    refusal: str = ""
    facts: tuple[Fact, ...] = ()
    lists: tuple[Listing, ...] = ()
    tables: tuple[Table, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    commands: tuple[str, ...] = ()
    # Commands of several lines.
    scripts: tuple[str, ...] = ()
    # A sentence on the commands.
    of_commands: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The page of a long table, from 1, and the rows on it."""

    number: int = 1
    count: int = 1
    first: int = 1
    last: int = 0
    rows: int = 0

    @property
    def before(self) -> int:
        """Return the number of the page before this one; 0 if this is the first."""
        return self.number - 1

    @property
    def after(self) -> int:
        """Return the number of the next page; 0 if this is the last."""
        return self.number + 1 if self.number < self.count else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A plan as its page shows it. `section` is the page that the navigation marks."""

    frame: Frame
    section: str
    title: str
    made_at: datetime
    # Beside the title, before the time at which the plan was made.
    note: str = ""
    crumbs: tuple[Link, ...] = ()
    notices: tuple[Notice, ...] = ()
    steps: tuple[Step, ...]
    # The present use of what would change, on which no plan can depend.
    use: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    pages: Pages = Pages()
    has_file: bool = False
    button: str = "Apply this plan"
    is_risk: bool = False
    # Leads to the form, filled in with what was asked for.
    change: Link | None = None
    # The address of a form that opens the plan again; it takes the seal.
    form: str = ""
    cancel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a plan: the page that shows what was done; else what happened instead."""

    address: str = ""
    # A message for that page.
    done: str = ""
    title: str = ""
    notices: tuple[Notice, ...] = ()
    # What differs from the plan, or was refused.
    lists: tuple[Listing, ...] = ()
    status: int = CONFLICT


def make_refusal(text: str) -> Notice:
    return Notice(mark="bad", word="Refused", text=text)


def no_change() -> Notice:
    return Notice(mark="stale", word="No change", text="Everything is already as it would be.")


def report_changes(subject: str, sentences: Iterable[str]) -> Outcome:
    """Return the outcome of a plan that was refused because what it depends on has changed."""
    return Outcome(
        title=f"The {subject} has changed since you looked",
        notices=(make_refusal("Nothing of this plan was done."),),
        lists=(Listing(title="What differs now", items=tuple((one, "") for one in sentences)),),
    )


def before_and_after(
    title: str, values: Mapping[str, tuple[str | None, str | None]], *, note: str = ""
) -> Table:
    """Return the table of values before and after; None: not set."""
    return Table(
        title=title,
        note=note,
        columns=(
            Column(title="Value", css="long"),
            Column(title="Before", css="mono long"),
            Column(title="After", css="mono long"),
        ),
        rows=tuple(
            (Cell(text=key), _value(key, before), _value(key, after))
            for key, (before, after) in values.items()
        ),
    )


def values(title: str, found: Mapping[str, str], *, note: str = "") -> Table:
    """Return the table of values that are new."""
    return Table(
        title=title,
        note=note,
        columns=(Column(title="Key", css="mono"), Column(title="Value", css="mono breaks")),
        rows=tuple((Cell(text=key), _value(key, text)) for key, text in found.items()),
    )


def _value(key: str, text: str | None) -> Cell:
    if text is None:
        return Cell(text="not set", is_faint=True)
    return Cell(text=text, more=in_words(key, text))
