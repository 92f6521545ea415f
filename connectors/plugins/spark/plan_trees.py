"""Converts a query that Spark has parsed into a tree, and accepts only known kinds of nodes.

Nothing is resolved or run here. Every field of every node is checked, and a class that is not in
the table below is an error, so features that Spark adds later are refused until they are listed.
`statements` decides which combinations of nodes are allowed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from connectors.sdk.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Deeper queries are generated, and larger ones take minutes to walk.
MAX_DEPTH: Final = 200
MAX_NODES: Final = 5000
CATALYST: Final = "org.apache.spark.sql.catalyst."
# Constants and types: their fields are not checked, and nothing in them reaches outside.
LEAVES: Final = ("org.apache.spark.unsafe.types.", "org.apache.spark.sql.types.")
ENUMERATION: Final = "scala.Enumeration$Val"
SEQUENCES: Final = "scala.collection."
TUPLES: Final = "scala.Tuple"

# package: its classes that a query may use
ALLOWED: Final[Mapping[str, str]] = {
    "": "AliasIdentifier",
    "plans.logical": (
        "Project Filter SubqueryAlias Union Join JoinHint OneRowRelation UnresolvedWith"
    ),
    "plans": "Inner$ Cross$ LeftOuter$ RightOuter$ FullOuter$ LeftSemi$ LeftAnti$ UsingJoin",
    "analysis": (
        "UnresolvedRelation UnresolvedAttribute UnresolvedStar UnresolvedAlias UnresolvedFunction"
        " UnresolvedExtractValue"
    ),
    "expressions": (
        "Alias Literal Cast NumericEvalContext"
        " And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual"
        " In IsNull IsNotNull Between CaseWhen"
        " Add Subtract Multiply Divide Remainder IntegralDivide UnaryMinus UnaryPositive"
        " Like ILike Concat Substring StringTrim StringTrimLeft StringTrimRight StringLocate"
        " LambdaFunction UnresolvedNamedLambdaVariable"
        " CreateNamedStruct NamePlaceholder$ CurrentDate CurrentTimestamp"
    ),
}
NODES: Final = frozenset(
    f"{CATALYST}{package}{'.' if package else ''}{name}"
    for package, names in ALLOWED.items()
    for name in names.split()
)
GUIDE: Final = "docs/howto/write-tables-with-spark.md"
STREAMS: Final = (
    "which needs what other batches had: write a stream for that (docs/howto/transform-streams.md)"
)
# Kinds that users often try, by the last part of their class: the message for each.
REFUSED: Final[Mapping[str, str]] = {
    "Aggregate": f"GROUP BY, {STREAMS}",
    "UnresolvedHaving": f"HAVING, {STREAMS}",
    "Distinct": f"DISTINCT, or UNION without ALL, {STREAMS}",
    "Sort": f"ORDER BY, {STREAMS}",
    "GlobalLimit": f"LIMIT, {STREAMS}",
    "LocalLimit": f"LIMIT, {STREAMS}",
    "Offset": f"OFFSET, {STREAMS}",
    "UnresolvedQualify": f"QUALIFY, {STREAMS}",
    "WithWindowDefinition": f"WINDOW, {STREAMS}",
    "WindowExpression": f"a window function, {STREAMS}",
    "UnresolvedWindowExpression": f"a window function, {STREAMS}",
    "Pivot": f"PIVOT, {STREAMS}",
    "Except": f"EXCEPT, {STREAMS}",
    "Intersect": f"INTERSECT, {STREAMS}",
    "Sample": "TABLESAMPLE, which takes other rows when a batch is run again",
    "ScalarSubquery": "a query within an expression; join with the table",
    "Exists": "EXISTS; join with the table, by LEFT SEMI JOIN",
    "InSubquery": "IN with a query; join with the table, by LEFT SEMI JOIN",
    "ListQuery": "IN with a query; join with the table, by LEFT SEMI JOIN",
    "UnresolvedTableValuedFunction": "a function in the place of a table",
    "Generate": "LATERAL VIEW; write explode() among the columns of SELECT",
    "ScriptTransformation": "TRANSFORM, which starts a program",
    "RLike": "RLIKE, whose pattern may never end; use contains(), startswith() or endswith()",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of a query: the last part of its class, and its fields by their names in Spark."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def nodes(self) -> Iterator["Node"]:
        """Yield the direct children, however they are wrapped."""
        yield from _nodes_in(tuple(self.fields.values()))

    def all(self) -> Iterator["Node"]:
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.nodes())


def parsed(session: "SparkSession", query: str) -> Any:
    """Return a plan of Spark that is parsed, but neither resolved nor run."""
    return session._jsparkSession.sessionState().sqlParser().parsePlan(query)  # noqa: SLF001


def tree(plan: Any) -> Node:
    """Return a parsed plan as a tree; ConfigError for the first node that is not allowed."""
    found = _Reader().read(plan, 0)
    assert isinstance(found, Node), "a plan is a node"
    return found


class _Reader:
    """Walks one plan in Spark's Java process."""

    def __init__(self) -> None:
        self._left = MAX_NODES
        self._names: dict[str, list[str]] = {}

    def read(self, thing: Any, depth: int) -> Any:
        from py4j.java_gateway import JavaObject  # noqa: PLC0415 - an extra

        if not isinstance(thing, JavaObject):
            # py4j converts these itself: numbers, texts, bytes.
            return thing
        self._left -= 1
        if self._left < 0:
            raise ConfigError(f"the query has more than {MAX_NODES} parts: make it simpler")
        if depth > MAX_DEPTH:
            raise ConfigError(f"the query is nested deeper than {MAX_DEPTH}: make it simpler")
        name = str(thing.getClass().getName())
        if name in NODES:
            return self._node(name, thing, depth)
        if name == "scala.None$":
            return None
        if name == "scala.Some":
            return self.read(thing.get(), depth + 1)
        if name.startswith(TUPLES):
            return tuple(self.read(one, depth + 1) for one in _elements(thing))
        if name.startswith(SEQUENCES):
            return tuple(self.read(thing.apply(at), depth + 1) for at in range(thing.length()))
        if name == ENUMERATION or name.startswith(LEAVES):
            return Node(kind=str(thing.toString()))
        if name == "org.apache.spark.sql.util.CaseInsensitiveStringMap" and thing.isEmpty():
            return ()
        raise ConfigError(f"the query has {_words(name)}")

    def _node(self, name: str, thing: Any, depth: int) -> Node:
        names = self._names.get(name)
        if names is None:
            names = [str(thing.productElementName(at)) for at in range(thing.productArity())]
            self._names[name] = names
        values = [self.read(one, depth + 1) for one in _elements(thing)]
        kind = name.rpartition(".")[2].removesuffix("$")
        return Node(kind=kind, fields=dict(zip(names, values, strict=True)))


def _elements(thing: Any) -> list[Any]:
    return [thing.productElement(at) for at in range(thing.productArity())]


def _words(name: str) -> str:
    kind = name.rpartition(".")[2].removesuffix("$")
    if kind in REFUSED:
        return REFUSED[kind]
    return f"{kind}, as Spark calls it, which is not served: {GUIDE} says what is"


def _nodes_in(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _nodes_in(one)
