"""Checks that each row of a query comes from one record, of topics and tables with known names.

Pure, over the tree of a parsed query. Each batch runs as a query of its own, so anything that
combines several records would be wrong at the edges of batches, and is refused by its name.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connectors.plugins.spark.plan_trees import GUIDE, STREAMS, Node
from connectors.plugins.spark.sql_functions import AGGREGATES, FUNCTIONS
from connectors.sdk.errors import ConfigError

# Kinds of joins that are right in batches when the topic is on the left, on the right, or on
# neither side.
ON_LEFT: Final = ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti")
ON_RIGHT: Final = ("Inner", "Cross", "RightOuter")
ON_NEITHER: Final = (*ON_LEFT, "RightOuter", "FullOuter")
# Kinds of nodes that wrap one other table.
WRAPPERS: Final = ("Project", "Filter", "SubqueryAlias", "UnresolvedWith")
# The column with the location of a file, which Spark adds to every table.
HIDDEN: Final = "_metadata"
LIKES: Final = ("Like", "ILike")
# Patterns that Spark compares without a regular expression, which may take forever, and which
# nothing can interrupt: `a`, `a%`, `%a`, `a%b` and `%a%`.
PLAIN_PATTERN: Final = re.compile(r"[^%_\\]*|[^%_\\]+%[^%_\\]*|%[^%_\\]+%?")
ESCAPE: Final = "\\"
# Names of WITH that read others twice double the reads each time; no query by hand has so many.
MAX_READS: Final = 100


def require(query: Node, *, views: Iterable[str], tables: Iterable[str]) -> None:
    """Raise ConfigError if a query is not allowed; names are in lower case."""
    for node in query.all():
        if node.kind == "UnresolvedFunction":
            _require_function(node.fields)
        if node.kind == "UnresolvedAttribute":
            _require_column(node.fields["nameParts"])
        if node.kind in LIKES:
            _require_plain_pattern(node)
    statement = _Statement(query, frozenset(views), frozenset(tables))
    # Spark looks at all of it, even at unused parts.
    for node in query.all():
        if node.kind == "UnresolvedRelation":
            statement.require_known(node)
    for plan in statement.named():
        statement.is_of_topics(plan)
    statement.read.clear()
    if not statement.is_of_topics(query):
        raise ConfigError("the query reads no topic: it would write the same with each batch")
    unread = sorted(statement.views - statement.read)
    if unread:
        raise ConfigError(f"the query does not read the view {unread[0]}: take its topic out")


def _require_function(fields: Mapping[str, Any]) -> None:
    name = ".".join(fields["nameParts"])
    if name.lower() in AGGREGATES:
        raise ConfigError(f"the query has {name}(), {STREAMS}")
    if len(fields["nameParts"]) != 1 or name.lower() not in FUNCTIONS:
        raise ConfigError(
            f"the query has the function {name[:100]}, which is not served: {GUIDE} says which are"
        )
    if fields["isDistinct"] or fields["filter"] is not None or fields["orderingWithinGroup"]:
        raise ConfigError(f"the query has {name}() over several records, {STREAMS}")


def _require_column(parts: Iterable[str]) -> None:
    if HIDDEN in (part.lower() for part in parts):
        raise ConfigError(f"the query contains {HIDDEN}, which shows where Spark's files are")


def _require_plain_pattern(like: Node) -> None:
    """Raise ConfigError for a LIKE that Spark would run as a regular expression."""
    pattern = _text_of(like.fields["right"])
    if pattern is None:
        raise ConfigError("the query has LIKE with a pattern that is not text: write it as 'a%'")
    if like.fields["escapeChar"] not in (ESCAPE, Node(kind=ESCAPE)) or not PLAIN_PATTERN.fullmatch(
        pattern
    ):
        raise ConfigError(
            f"the query has LIKE '{pattern[:100]}', whose search may never end: write 'a', 'a%',"
            " '%a', 'a%b' or '%a%' without _ and escapes, and join several by AND"
        )


def _text_of(node: Any) -> str | None:
    """Return the text of a constant; None for anything else."""
    if not isinstance(node, Node) or node.kind != "Literal":
        return None
    value = node.fields["value"]
    # Numbers and bytes are no nodes; whatever else is one, Spark compares by its text.
    return value.kind if isinstance(value, Node) else None


class _Statement:
    """A query whose names are resolved; names of WITH are distinct in all of it."""

    def __init__(self, query: Node, views: frozenset[str], tables: frozenset[str]) -> None:
        self.views = views
        self.read: set[str] = set()
        self._tables = tables
        self._named: dict[str, Node] = {}
        self._open: set[str] = set()
        self._reads = 0
        for node in query.all():
            if node.kind == "UnresolvedWith":
                self._add(node)

    def is_of_topics(self, node: Node) -> bool:
        """Return whether rows come from records, not from tables only; ConfigError for both."""
        if node.kind in WRAPPERS:
            return self.is_of_topics(_only(node, "child"))
        if node.kind == "UnresolvedRelation":
            return self._relation(node)
        if node.kind == "Union":
            return self._union(node)
        if node.kind == "Join":
            return self._join(node)
        if node.kind == "OneRowRelation":
            return False
        raise ConfigError(f"the query has {node.kind} in the place of a table")

    def named(self) -> list[Node]:
        """Return the queries that WITH names, used or not."""
        return list(self._named.values())

    def _add(self, node: Node) -> None:
        if node.fields["allowRecursion"]:
            raise ConfigError("the query has WITH RECURSIVE, which is not served")
        for one in node.fields["cteRelations"]:
            name, plan = str(one[0]).lower(), one[1]
            if name in self.views | self._tables | set(self._named):
                raise ConfigError(f"the query names {name} twice: give WITH another name")
            self._named[name] = plan

    def require_known(self, node: Node) -> str:
        """Return the name of a relation; ConfigError if the connector does not define it."""
        parts = node.fields["multipartIdentifier"]
        name = str(parts[0]).lower()
        is_plain = len(parts) == 1 and not node.fields["isStreaming"] and not node.fields["options"]
        if is_plain and name in self.views | self._tables | set(self._named):
            return name
        raise ConfigError(
            f"the query reads {'.'.join(parts)[:200]}, which is neither a view nor a table of "
            f"this connector: they are {', '.join(sorted(self.views | self._tables))}"
        )

    def _relation(self, node: Node) -> bool:
        name = self.require_known(node)
        self._reads += 1
        if self._reads > MAX_READS:
            raise ConfigError(f"the query reads tables more than {MAX_READS} times, through WITH")
        if name in self._named:
            if name in self._open:
                raise ConfigError(f"{name} is of itself in the query: give WITH another name")
            self._open.add(name)
            found = self.is_of_topics(self._named[name])
            self._open.discard(name)
            return found
        if name in self.views:
            self.read.add(name)
        return name in self.views

    def _union(self, node: Node) -> bool:
        found = {self.is_of_topics(child) for child in node.nodes()}
        if len(found) > 1:
            raise ConfigError(
                "a part of UNION ALL reads tables only, which would be written with each batch"
            )
        return found == {True}

    def _join(self, node: Node) -> bool:
        left = self.is_of_topics(_only(node, "left"))
        right = self.is_of_topics(_only(node, "right"))
        kind = _only(node, "joinType")
        if kind.kind == "UsingJoin":
            kind = _only(kind, "tpe")
        if left and right:
            raise ConfigError(f"the query joins two topics, {STREAMS}")
        allowed = ON_LEFT if left else ON_RIGHT if right else ON_NEITHER
        if kind.kind not in allowed:
            raise ConfigError(
                f"the query has a join of the kind {kind.kind}, which returns rows of the table"
                " that no record of a batch has, with each batch: put the topic on the left, and"
                " write JOIN or LEFT JOIN"
            )
        return left or right


def _only(node: Node, name: str) -> Node:
    found = node.fields[name]
    assert isinstance(found, Node), f"{node.kind} has a {name}"
    return found
