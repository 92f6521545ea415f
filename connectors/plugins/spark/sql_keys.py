"""Defines and checks the keys of Spark SQL. Pure: a worker without Spark checks them too.

Spark parses the query (`plan_trees`, `statements`); this module checks it only far enough to
report a mistake while the config is written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from connectors.plugins.spark import keys
from connectors.plugins.spark.keys import Layout, Values
from connectors.sdk import home_files
from connectors.sdk.configs import Definition, Files, Importance, Key, Kind
from connectors.sdk.connector import Parsed

QUERY: Final = "query"
VIEWS: Final = "views"
SCHEMAS: Final = "view.schemas"
TABLES: Final = "tables"
TOPIC: Final = "output.topic"
KEY: Final = "output.key"
TOPICS: Final = "topics"

QUERIES, TARGET = "Query", "Target"
# Longer queries are generated, and Spark's parser has to hold them.
MAX_QUERY_CHARS: Final = 20_000
MAX_VIEWS: Final = 100
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
BEGINS: Final = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
# Text in which a semicolon does not end the statement.
QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL)
# Spark substitutes settings and variables of its process for these, in any text of SQL.
SUBSTITUTED: Final = "${"
# Views whose values are not objects have one of these instead of columns.
WORDS: Final[Mapping[str, Values]] = {"string": Values.STRING, "binary": Values.BINARY}
# Spark expands a path with one of these to many folders.
GLOBS: Final = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A topic as seen by the query."""

    name: str
    topic: str
    values: Values
    # The columns of JSON values.
    ddl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parsed config; names are in lower case, as SQL compares them."""

    query: str
    views: Mapping[str, View]
    # Paths of tables below the home's files.
    tables: Mapping[str, str]
    layout: Layout
    topic: str
    key: str


def settings_of(parsed: Parsed) -> Settings:
    topics = dict(_pair(text) for text in parsed[VIEWS])
    views = {}
    for name, columns in _schemas(parsed[SCHEMAS]):
        values = WORDS.get(columns.lower(), Values.JSON)
        ddl = columns if values is Values.JSON else ""
        views[name.lower()] = View(name=name, topic=topics.get(name, name), values=values, ddl=ddl)
    return Settings(
        query=parsed[QUERY],
        views=views,
        tables={name.lower(): path for name, path in map(_pair, parsed[TABLES])},
        layout=Layout(partition_by=tuple(parsed[keys.PARTITION_BY]), times={}, has_metadata=False),
        topic=parsed[TOPIC],
        key=parsed[KEY],
    )


def problems(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Yield keys that conflict with others, each with the problem."""
    found = settings_of(parsed)
    yield from _of_target(found, parsed)
    named = {name for name, _ in map(_pair, parsed[VIEWS])}
    for name in sorted(named - {view.name for view in found.views.values()}):
        yield VIEWS, f"The view {name} has no columns: give them in {SCHEMAS}, as {name}: id BIGINT"
    both = sorted(set(found.views) & set(found.tables))
    if both:
        yield TABLES, f"{both[0]} is a view already: give the table another name"
    by_topic: dict[str, str] = {}
    for view in found.views.values():
        other = by_topic.setdefault(view.topic, view.name)
        if other != view.name:
            yield (
                VIEWS,
                f"The topic {view.topic} is the view {other} already: leave {view.name} out",
            )
    if TOPICS in parsed:
        yield from _of_topics(found, by_topic, parsed[TOPICS])


def _of_target(found: Settings, parsed: Parsed) -> Iterator[tuple[str, str]]:
    path: str = parsed[keys.PATH]
    if bool(found.topic) == bool(path):
        yield TOPIC, f"Give either {TOPIC} or {keys.PATH}: the rows have one target"
    if found.key and not found.topic:
        yield KEY, f"Only records of a topic have a key: give {TOPIC}, or leave it out"
    if found.layout.folders and not path:
        yield keys.PARTITION_BY, f"Only a table has folders: give {keys.PATH}, or leave it out"
    if found.topic in {view.topic for view in found.views.values()}:
        yield TOPIC, f"The query reads {found.topic}, and would read what it writes: name another"
    if path:
        yield from keys.table_problems(parsed)
        target = home_files.parts_of(path)
        for name, text in found.tables.items():
            parts = home_files.parts_of(text)
            shorter = min(len(parts), len(target))
            if parts[:shorter] == target[:shorter]:
                yield (
                    TABLES,
                    f"The table {name} is inside the table that is written, or contains it",
                )


def _of_topics(
    found: Settings, by_topic: Mapping[str, str], topics: Sequence[str]
) -> Iterator[tuple[str, str]]:
    if not topics:
        yield TOPICS, "Name the topics: a pattern may lead to some that no view has columns for"
    for topic in topics:
        if topic not in by_topic:
            yield SCHEMAS, f"The topic {topic} has no columns: {_how(topic)}"
    for view in found.views.values():
        if topics and view.topic not in topics:
            yield SCHEMAS, f"The view {view.name} is of {view.topic}, which {TOPICS} does not name"


def _how(topic: str) -> str:
    if NAME.fullmatch(topic):
        return f"add a line such as {topic}: id BIGINT"
    return f"give it a name in {VIEWS}, as orders={topic}, and a line such as orders: id BIGINT"


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def _paths_of(tables: Sequence[str]) -> list[str]:
    return [path for _, path in map(_pair, tables)]


def _schemas(text: str) -> list[tuple[str, str]]:
    """Return pairs of a name and its columns, separated by lines or semicolons."""
    lines = [line.strip() for line in re.split(r"[;\n]", text)]
    pairs = [line.partition(":") for line in lines if line]
    return [(name.strip(), columns.strip()) for name, _, columns in pairs]


# --- checks of single keys -----------------------------------------------------------------------


def query_problem(value: Any) -> str | None:
    text = str(value or "")
    if len(text) > MAX_QUERY_CHARS:
        return f"It has {len(text)} characters, at most {MAX_QUERY_CHARS} are read"
    if not BEGINS.match(text):
        return "It must be one query, which begins with SELECT or WITH"
    if SUBSTITUTED in text:
        return f"It must not hold {SUBSTITUTED}, in whose place Spark would put its own settings"
    if ";" in QUOTED.sub("", text).rstrip().removesuffix(";"):
        return "It must be one query: there is something behind a semicolon"
    return None


def _pairs_problem(value: Any) -> str | None:
    pairs = [_pair(text) for text in value or []]
    for name, other in pairs:
        if not NAME.fullmatch(name) or not other:
            return "Give pairs such as orders=shop.orders: names have letters, digits and _ only"
    return _names_problem([name for name, _ in pairs])


def _tables_problem(value: Any) -> str | None:
    wrong = _pairs_problem(value)
    for _, path in () if wrong else map(_pair, value or []):
        wrong = wrong or home_files.problem(path)
        if GLOBS.search(path):
            return f"{path} has a character by which Spark reads many folders: rename the folder"
    return wrong


def _schemas_problem(value: Any) -> str | None:
    lines = _schemas(str(value or ""))
    for name, columns in lines:
        if not NAME.fullmatch(name) or not columns:
            return (
                "Give a line for each view, such as orders: id BIGINT, total DOUBLE; names have"
                " letters, digits and _ only"
            )
        if (wrong := keys.columns_problem(columns)) is not None:
            return f"{name}: {wrong}"
    return _names_problem([name for name, _ in lines])


def _names_problem(names: Sequence[str]) -> str | None:
    if len(names) > MAX_VIEWS:
        return f"{len(names)} are given, at most {MAX_VIEWS} are read"
    if len({name.lower() for name in names}) < len(names):
        return "Each name is given once; capitals make no other name"
    return None


def _path_problem(value: Any) -> str | None:
    return home_files.problem(value) if value else None


def definition() -> Definition:
    of_sink = {key.name: key for key in keys.definition()}
    return Definition(
        (
            *_of_query(),
            *_of_output(),
            replace(of_sink[keys.FORMAT], group=TARGET, visible=_goes_to_a_table),
            replace(of_sink[keys.COMPACT], group=TARGET),
            replace(of_sink[keys.NAMESPACE], group=TARGET),
            replace(of_sink[keys.NAME], group=TARGET),
            replace(
                of_sink[keys.PARTITION_BY],
                group=TARGET,
                visible=_goes_to_a_table,
                doc="Columns of the query whose values become folders.",
            ),
            *keys.of_batches(),
        )
    )


def _goes_to_a_table(values: Mapping[str, Any]) -> bool:
    return bool(values.get(keys.PATH))


def _goes_to_a_topic(values: Mapping[str, Any]) -> bool:
    return not _goes_to_a_table(values)


def _of_query() -> tuple[Key, ...]:
    return (
        _key(
            QUERY,
            Kind.STRING,
            "One SELECT over the views and tables. Each row comes of one record, so there are no"
            " aggregates, DISTINCT, windows, ORDER BY, LIMIT, or joins of two topics.",
            QUERIES,
            check=query_problem,
            importance=Importance.HIGH,
            display_name="Query",
            example="SELECT id, total FROM orders WHERE total > 100",
            has_lines=True,
        ),
        _key(
            SCHEMAS,
            Kind.STRING,
            "A line for each topic: its view and the columns of its JSON objects. `NAME: string` or"
            " `NAME: binary` are values that are the one column `value`. Each view also has the"
            " columns `_key`, `_topic`, `_partition`, `_offset` and `_timestamp`.",
            QUERIES,
            check=_schemas_problem,
            importance=Importance.HIGH,
            display_name="Columns of views",
            example="orders: id BIGINT, total DOUBLE",
            has_lines=True,
        ),
        _key(
            VIEWS,
            Kind.LIST,
            "Names of topics in the query, for those that have a dot or a hyphen; the others have"
            " their own.",
            QUERIES,
            default=(),
            check=_pairs_problem,
            display_name="Names of views",
            example="orders=shop.orders",
        ),
        _key(
            TABLES,
            Kind.LIST,
            "Parquet folders to join with, below the folder `files` of Samsa's home. They are read"
            " again for each batch.",
            QUERIES,
            default=(),
            check=_tables_problem,
            files=Files(is_written=False, is_folder=True, paths=_paths_of),
            display_name="Tables to join with",
            example="customers=lake/customers",
        ),
    )


def _of_output() -> tuple[Key, ...]:
    return (
        _key(
            TOPIC,
            Kind.STRING,
            "Give this or a folder. The topic gets each row as a JSON object, at least once; it has"
            " to exist.",
            TARGET,
            default="",
            importance=Importance.HIGH,
            display_name="To a topic",
            example="large-orders",
        ),
        _key(
            KEY,
            Kind.STRING,
            "The column that becomes the key of records; it stays in the value too.",
            TARGET,
            default="",
            importance=Importance.HIGH,
            display_name="Key column",
            example="id",
            visible=_goes_to_a_topic,
        ),
        _key(
            keys.PATH,
            Kind.STRING,
            "Give this or a topic. The table in this folder, below the folder `files` of Samsa's"
            " home, gets each row once.",
            TARGET,
            default="",
            check=_path_problem,
            files=keys.TABLE_FOLDER,
            importance=Importance.HIGH,
            display_name="To a table in the folder",
            example="lake/large-orders",
        ),
    )


def _key(name: str, kind: Kind, doc: str, group: str, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(name=name, kind=kind, doc=doc, group=group, importance=importance, **more)
