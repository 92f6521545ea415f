"""LIKE is taken where Spark needs no regular expression; over trees as data, without Spark."""

import pytest

from connectors.plugins.spark import statements
from connectors.plugins.spark.plan_trees import Node
from connectors.sdk.errors import ConfigError

NAME = Node(kind="UnresolvedAttribute", fields={"nameParts": ("name",)})
ORDERS = Node(
    kind="UnresolvedRelation",
    fields={"multipartIdentifier": ("orders",), "isStreaming": False, "options": ()},
)


def constant(text: str) -> Node:
    return Node(kind="Literal", fields={"value": Node(kind=text), "dataType": Node(kind="string")})


def check(pattern: Node, *, kind: str = "Like", escape: object = "\\") -> None:
    like = Node(kind=kind, fields={"left": NAME, "right": pattern, "escapeChar": escape})
    query = Node(kind="Filter", fields={"condition": like, "child": ORDERS})
    statements.require(query, views=["orders"], tables=[])


@pytest.mark.parametrize("kind", ["Like", "ILike"])
@pytest.mark.parametrize("pattern", ["", "ab", "ab%", "%ab", "a%b", "%a b\n%", "%(a+)+%"])
def test_a_pattern_without_a_regular_expression_is_taken(pattern: str, kind: str) -> None:
    check(constant(pattern), kind=kind)
    check(constant(pattern), kind=kind, escape=Node(kind="\\"))


@pytest.mark.parametrize(
    "pattern", ["%a%a%a%a%a%b", "%%", "%", "a%b%", "%a%b", "a_b", "_%a", "a\\%b", "%a%%"]
)
def test_a_pattern_that_needs_one_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"whose search may never end: write 'a', 'a%'"):
        check(constant(pattern))


def test_an_escape_or_a_pattern_of_the_record_is_refused() -> None:
    with pytest.raises(ConfigError, match="may never end"):
        check(constant("a/%"), escape="/")
    for pattern in (NAME, Node(kind="Literal", fields={"value": 1, "dataType": Node(kind="int")})):
        with pytest.raises(ConfigError, match="a pattern that is not text"):
            check(pattern)
