"""Expressions match whole names, as Debezium's do."""

import pytest

from connectors.plugins.postgres.capture import filters
from connectors.plugins.postgres.capture.filters import Choice, Filters

EVERYTHING = Filters(schemas=Choice(), tables=Choice(), columns=Choice())


@pytest.mark.parametrize(
    ("items", "name", "fits"),
    [
        (["public.orders"], "public.orders", True),
        (["public.orders"], "public.orders_old", False),
        (["public.orders"], "PUBLIC.Orders", True),
        (["orders"], "public.orders", False),
        (["a.b", "public\\..*"], "public.x", True),
        (["x|public.a"], "public.a", True),
        (["public.a{1\\", "2}"], "public.aa", True),
    ],
)
def test_one_of_the_expressions_matches_the_whole_name(
    items: list[str], name: str, fits: bool
) -> None:
    matches = filters.any_of(items)

    assert matches is not None, "there are expressions"
    assert matches(name) is fits


def test_no_expression_is_no_choice() -> None:
    assert filters.any_of([""]) is None
    assert Choice().has("anything")


def test_what_is_no_expression_is_told() -> None:
    assert "not a valid regular expression" in (filters.wrong_with(["public.("]) or "")
    assert filters.wrong_with(["public.a"]) is None


def test_tables_of_the_server_are_never_captured() -> None:
    assert EVERYTHING.has_table("public", "pg_class")
    assert not EVERYTHING.has_table("pg_catalog", "pg_class")


def test_a_rule_names_the_key_of_the_tables_that_it_matches() -> None:
    rules = filters.key_rules("public.a:x, y;(?:public|other)\\.b.*:z;")
    chosen = Filters(schemas=Choice(), tables=Choice(), columns=Choice(), keys=rules)

    assert chosen.key_of("public", "a") == ("x", "y")
    assert chosen.key_of("other", "bees") == ("z",)
    assert chosen.key_of("public", "c") == ()


@pytest.mark.parametrize("text", ["public.a", "public.a:", ":x", "public.a:x,", "public.(:x"])
def test_what_is_no_rule_of_keys_is_told(text: str) -> None:
    assert filters.wrong_with_keys(text)


def test_what_is_excluded_is_left_out() -> None:
    chosen = Filters(
        schemas=Choice(exclude=filters.any_of(["secret"])),
        tables=Choice(include=filters.any_of(["public.*"])),
        columns=Choice(exclude=filters.any_of([".*\\.password"])),
    )

    assert chosen.has_table("public", "users")
    assert not chosen.has_table("secret", "public.users")
    assert chosen.has_column("public", "users", "name")
    assert not chosen.has_column("public", "users", "password")
