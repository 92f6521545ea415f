"""Selects the tables and columns to capture, by lists of expressions that match whole names.

Pure. As in Debezium, case does not matter, a name is schema.table or schema.table.column, and a
comma within an expression is escaped by a backslash.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from connectors.sdk.errors import ConfigError
from connectors.sdk.regexes import compile_checked

# The server's own schemas.
OWN_SCHEMAS: Final = ("pg_catalog", "information_schema")
Matches: TypeAlias = Callable[[str], bool]


def expressions(items: Sequence[str]) -> list[str]:
    """Return the expressions of a list that was split at each comma."""
    whole: list[str] = []
    open_ = False
    for item in items:
        if open_:
            whole[-1] = f"{whole[-1][:-1]},{item}"
        else:
            whole.append(item)
        open_ = item.endswith("\\") and not item.endswith("\\\\")
    return [text for text in whole if text]


def any_of(items: Sequence[str]) -> Matches | None:
    """Return a predicate for whole names that match any expression; None without expressions.

    Raises ConfigError for an invalid expression.
    """
    compiled = [compile_checked(f"(?i:{text})") for text in expressions(items)]
    return (lambda name: any(one.fullmatch(name) for one in compiled)) if compiled else None


def wrong_with(value: Any) -> str | None:
    """Check a list of expressions."""
    try:
        any_of(value or ())
    except ConfigError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An include list of names, or an exclude list."""

    include: Matches | None = field(default=None, repr=False)
    exclude: Matches | None = field(default=None, repr=False)

    def has(self, name: str) -> bool:
        if self.include is not None:
            return self.include(name)
        return self.exclude is None or not self.exclude(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """The key columns of records, by table."""

    tables: Matches = field(repr=False)
    columns: tuple[str, ...]


def key_rules(text: str | None) -> tuple[KeyRule, ...]:
    """Read rules as `schema.table:column,column;…`; Raises ConfigError."""
    rules = []
    for rule in (part.strip() for part in (text or "").split(";")):
        if not rule:
            continue
        # An expression may contain a colon; a column name may not.
        tables, _, listed = rule.rpartition(":")
        columns = tuple(column.strip() for column in listed.split(","))
        matches = any_of([tables.strip()])
        if matches is None or not all(columns):
            raise ConfigError(f"{rule!r} is not a rule: write schema.table:column,column")
        rules.append(KeyRule(tables=matches, columns=columns))
    return tuple(rules)


def wrong_with_keys(value: Any) -> str | None:
    """Check rules of keys."""
    try:
        key_rules(value)
    except ConfigError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    schemas: Choice
    tables: Choice
    columns: Choice
    snapshot: Matches | None = field(default=None, repr=False)
    keys: tuple["KeyRule", ...] = ()

    def has_table(self, schema: str, name: str) -> bool:
        return (
            schema not in OWN_SCHEMAS
            and self.schemas.has(schema)
            and self.tables.has(f"{schema}.{name}")
        )

    def has_column(self, schema: str, table: str, column: str) -> bool:
        return self.columns.has(f"{schema}.{table}.{column}")

    def key_of(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the key columns that a rule gives a table; none without a rule."""
        named = f"{schema}.{table}"
        return next((rule.columns for rule in self.keys if rule.tables(named)), ())

    def is_in_snapshot(self, schema: str, name: str) -> bool:
        return self.snapshot is None or self.snapshot(f"{schema}.{name}")
