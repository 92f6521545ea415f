"""Makes rows of a batch of records with a query, in a session of the connector's own.

The query is parsed, checked, and then run as the very plan that was checked: its text is not
parsed a second time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.spark import bad_records, engine, frames, plan_trees, statements
from connectors.plugins.spark.batches import Span, State
from connectors.plugins.spark.folders import table_folder
from connectors.plugins.spark.schemas import Columns, quoted
from connectors.plugins.spark.shaping import Counts
from connectors.plugins.spark.sql_keys import Settings, View, problems, query_problem, settings_of
from connectors.plugins.spark.tables import require_no_log
from connectors.plugins.spark.tries import Tries
from connectors.sdk.connector import JobContext, Parsed
from connectors.sdk.errors import ConfigError, ConnectorError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Keys of the values kept between slices: the session, and whether its query was checked.
SESSION: Final = "session"
CHECKED: Final = "checked"
# Paths are not relations, and variables are not substituted.
SESSION_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A session of the connector, and its parent: both are gone with the Java process."""

    parent: "SparkSession"
    session: "SparkSession"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlBatch:
    """The rows of one batch, whose records were counted and refused before."""

    frame: "DataFrame"
    columns: Columns
    counts: Counts

    def finish(self) -> Counts:
        return self.counts


class SqlRows:
    def __init__(self, context: JobContext, parsed: Parsed) -> None:
        for _, wrong in problems(parsed):
            raise ConfigError(wrong)
        # Only the worker can resolve a text that refers to another one.
        if (wrong_query := query_problem(parsed["query"])) is not None:
            raise ConfigError(f"query: {wrong_query}")
        engine.require_own_process("samsa.spark.sql")
        self._context = context
        self._settings: Settings = settings_of(parsed)
        self.layout = self._settings.layout
        if CHECKED not in context.kept:
            # Report problems when the connector starts, not at its first record.
            with engine.errors(Tries.of(context)):
                self._plan(self._session())
            context.kept[CHECKED] = True

    def shape(self, spans: Sequence[Span], state: State) -> SqlBatch:
        of_topics = {view.topic: view for view in self._settings.views.values()}
        for span in spans:
            if span.place.topic not in of_topics:
                raise ConnectorError(
                    f"{span.place.topic} is read and is not a view: give its columns in "
                    "view.schemas"
                )
        session = self._session()
        of_views = [
            self._view(
                session, view, [s for s in spans if s.place.topic == view.topic], state.topics
            )
            for view in self._settings.views.values()
        ]
        for name, path in self._settings.tables.items():
            _table(session, path).createOrReplaceTempView(quoted(name))
        frame = _frame(session, self._plan(session))
        return SqlBatch(frame=frame, columns=state.columns, counts=_sum(of_views))

    def _session(self) -> "SparkSession":
        parent = engine.spark()
        own: Own | None = self._context.kept.get(SESSION)
        if own is None or own.parent is not parent:
            own = Own(parent=parent, session=engine.beside(parent, SESSION_SETTINGS))
            self._context.kept[SESSION] = own
        return own.session

    def _plan(self, session: "SparkSession") -> Any:
        """Return the plan of the query, which was checked."""
        plan = plan_trees.parsed(session, self._settings.query)
        statements.require(
            plan_trees.tree(plan), views=self._settings.views, tables=self._settings.tables
        )
        return plan

    def _view(
        self,
        session: "SparkSession",
        view: View,
        spans: Sequence[Span],
        topics: Mapping[str, str],
    ) -> Counts:
        """Make the view of a batch; count its records, and refuse those that are not rows."""
        bootstrap = self._context.bootstrap
        source = frames.records(session, bootstrap, spans, topics=topics) if spans else None
        decoded = frames.decoded(
            frames.no_records(session) if source is None else source, view.values, view.ddl
        )
        frames.view(decoded).createOrReplaceTempView(quoted(view.name))
        if source is None:
            return Counts(read=0, skipped=0)
        counts = decoded.select(*frames.counts_of()).first()
        assert counts is not None, "an aggregate has one row"
        if counts["wrong"]:
            kind = bad_records.Kind(values=view.values, ddl=view.ddl, topics=topics)
            bad_records.refuse(self._context, spans, kind)
        return Counts(read=counts["read"], skipped=counts["null"], newest_ms=counts["newest"])


def _sum(counts: Sequence[Counts]) -> Counts:
    known = [one.newest_ms for one in counts if one.newest_ms is not None]
    return Counts(
        read=sum(one.read for one in counts),
        skipped=sum(one.skipped for one in counts),
        newest_ms=max(known, default=None),
    )


def _frame(session: "SparkSession", plan: Any) -> "DataFrame":
    """Return the rows of a parsed plan, as `session.sql` does for its text."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic  # noqa: PLC0415 - an extra

    java = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(  # noqa: SLF001
        session._jsparkSession,  # noqa: SLF001
        plan,
    )
    return Classic(java, session)


def _table(session: "SparkSession", path: str) -> "DataFrame":
    folder = table_folder(path)
    if not folder.is_dir():
        raise ConnectorError(f"there is no table {path}: write it first, or take it out of tables")
    require_no_log(folder, path)
    # Spark takes a path as it is written, and no URI for it.
    return session.read.option("mergeSchema", "true").parquet(f"file://{folder}")
