"""What a config of Spark SQL may say, without a Spark."""

import pytest

from connectors.plugins.spark import sql_keys
from connectors.plugins.spark.keys import Values
from connectors.sdk import checks
from connectors.sdk.errors import ConfigError
from connectors.sdk.testing import parse_config

SHORTEST = {
    "query": "SELECT id FROM orders",
    "view.schemas": "orders: id BIGINT",
    "output.topic": "made",
}


def problems(topics: list[str], **more: str) -> list[str]:
    told = SHORTEST | {name.replace("_", "."): text for name, text in more.items()}
    parsed = parse_config(sql_keys.definition(), told)
    return [wrong for _, wrong in sql_keys.problems({**parsed, "topics": topics})]


def test_views_have_topics_and_columns() -> None:
    told = SHORTEST | {
        "views": "orders=shop.orders",
        "view.schemas": "Orders: id BIGINT, total DECIMAL(10, 2)\nlines: string; raw: BINARY",
    }

    with pytest.raises(ConfigError, match="query"):
        parse_config(sql_keys.definition(), told | {"query": "DROP TABLE t"})
    found = sql_keys.settings_of(
        parse_config(sql_keys.definition(), told | {"views": "Orders=shop.orders"})
    )

    assert {name: view.topic for name, view in found.views.items()} == {
        "orders": "shop.orders",
        "lines": "lines",
        "raw": "raw",
    }
    assert [view.values for view in found.views.values()] == [
        Values.JSON,
        Values.STRING,
        Values.BINARY,
    ]
    assert found.views["orders"].ddl == "id BIGINT, total DECIMAL(10, 2)"


def test_a_config_that_fits_is_taken() -> None:
    assert problems(["orders"]) == []
    assert problems(["shop.orders"], views="orders=shop.orders") == []
    assert problems(["orders"], output_topic="", table_path="lake/o", partition_by="id") == []


@pytest.mark.parametrize(
    ("topics", "more", "words"),
    [
        (["orders"], {"table_path": "lake/o"}, "either output.topic or table.path"),
        (["orders"], {"output_topic": ""}, "either output.topic or table.path"),
        (["orders"], {"output_topic": "orders"}, "would read what it writes"),
        (["orders"], {"partition_by": "id"}, "Only a table has folders"),
        (
            ["orders"],
            {"output_topic": "", "table_path": "lake/o o", "table_format": "iceberg"},
            "Give the table a name: o o",
        ),
        (
            ["orders"],
            {"output_topic": "", "table_path": "lake/o", "output_key": "id"},
            "Only records of a topic have a key",
        ),
        (
            ["orders"],
            {"output_topic": "", "table_path": "lake/o", "tables": "t=lake/o/day"},
            "is inside the table that is written",
        ),
        ([], {}, "Name the topics"),
        (["orders", "others"], {}, "add a line such as others: id BIGINT"),
        (["orders", "a.b"], {}, "give it a name in views"),
        (["orders"], {"view_schemas": "orders: id INT; more: id INT"}, "does not name"),
        (["orders"], {"views": "more=orders"}, "The view more has no columns"),
        (["orders"], {"tables": "ORDERS=lake/t"}, "is a view already"),
        (
            ["orders"],
            {"views": "a=orders,b=orders", "view_schemas": "a: id INT; b: id INT"},
            "is the view a already",
        ),
    ],
)
def test_what_does_not_fit_together_is_told(
    topics: list[str], more: dict[str, str], words: str
) -> None:
    assert any(words in wrong for wrong in problems(topics, **more))


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("query", "INSERT INTO t SELECT 1", "begins with SELECT or WITH"),
        ("query", "SELECT 1; DROP TABLE t", "behind a semicolon"),
        ("query", "SELECT '${env:HOME}' FROM orders", "must not hold ${"),
        ("query", f"SELECT '{'x' * 20_000}'", "at most 20000"),
        ("view.schemas", "shop.orders: id INT", "letters, digits and _ only"),
        ("view.schemas", "orders", "Give a line for each view"),
        ("view.schemas", "a: id INT; A: id INT", "Each name is given once"),
        ("view.schemas", 'a: {"type":"udt","class":"java.io.File"}', "begin with a name"),
        ("views", "a b=orders", "letters, digits and _ only"),
        ("tables", "t=/etc", "is outside"),
        ("tables", "t=../up", "begin with no dot"),
        ("tables", "t=lake/{a", "many folders"),
    ],
)
def test_single_keys_are_checked(key: str, text: str, words: str) -> None:
    wrong = checks.check(
        sql_keys.definition().by_name[key], checks.parse(sql_keys.definition().by_name[key], text)
    )

    assert wrong is not None
    assert words in wrong


def test_a_semicolon_in_a_text_or_at_the_end_ends_nothing() -> None:
    for query in ("SELECT 'a;b' FROM orders;", 'SELECT `a;b` FROM o WHERE x = "it\\";s"'):
        assert sql_keys.query_problem(query) is None
