"""Builds topologies: `stream(…).where(…).group(…).window(…).aggregate(…).final().to(…)`.

Each step returns a new stream and leaves the old one unchanged, so two streams can share their
first steps. A step that cannot run is refused at once, not at run time.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn

from spark_integration.streams.absent import absent
from spark_integration.streams.aggregates import Aggregate, kind_of_aggregate
from spark_integration.streams.durations import parse_duration
from spark_integration.streams.errors import refused
from spark_integration.streams.expressions import (
    Expression,
    expression_of,
    field,
    kind_of,
    text_of,
)
from spark_integration.streams.fields import (
    ALWAYS,
    IN_KEYS,
    Columns,
    Kind,
    require_column,
    require_names,
    shown,
)
from spark_integration.streams.formats import Form, Format
from spark_integration.streams.topology import Grouping, Select, Source, Topology, Where
from spark_integration.streams.windows import Shape, Window

TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
MOST_STEPS: Final = 100
# Spark needs seconds to plan more columns.
MOST_COLUMNS: Final = 1000


class Stage(Enum):
    """The stage of a stream after its last step."""

    ROWS = "stream, where or select"
    GROUPED = "group"
    WINDOWED = "window"
    AGGREGATED = "aggregate"
    FINAL = "final"


# step: (stages that it may follow, advice otherwise)
FOLLOWS: Final = {
    "where": ({Stage.ROWS}, "filter before group, or read the result with a second topology"),
    "select": ({Stage.ROWS}, "compute before group, or read the result with a second topology"),
    "group": ({Stage.ROWS}, "group once, or read the result with a second topology"),
    "window": ({Stage.GROUPED}, "put window right after group"),
    "aggregate": (
        {Stage.GROUPED, Stage.WINDOWED},
        "put aggregate after group, or after group and window",
    ),
    "final": ({Stage.AGGREGATED}, "put final after aggregate"),
    "to": (
        {Stage.ROWS, Stage.AGGREGATED, Stage.FINAL},
        "a group needs aggregate before it can be written",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """A topology that is being built."""

    source: Source
    columns: Columns
    stage: Stage = Stage.ROWS
    steps: tuple[Where | Select, ...] = ()
    groups: tuple[tuple[str, Kind], ...] = ()
    windowed: Window | None = None
    aggregates: tuple[tuple[str, Aggregate, Kind], ...] = ()

    if not TYPE_CHECKING:
        # Type checkers go on to report attributes that are not there.
        def __getattr__(self, name: str) -> NoReturn:
            raise absent(name)

    def where(self, condition: Expression) -> "Stream":
        """Keep the rows that satisfy a condition."""
        require_stage("where", self.stage)
        condition = expression_of(condition)
        kind = kind_of("where", condition, self.visible)
        if kind is not Kind.BOOLEAN:
            raise refused(
                "where",
                f"{text_of(condition)} is of kind {kind.value!r}",
                "give a condition, as in field('amount') > 0",
            )
        return self.with_step(Where(condition=condition))

    def select(self, *names: str, **computed: object) -> "Stream":
        """Make rows of these fields: existing names, and `name=expression`."""
        require_stage("select", self.stage)
        for name in names:
            require_column("select", self.visible, name)
        require_names("select", [*names, *computed])
        if twice := set(names) & set(computed):
            raise refused("select", f"{min(twice)!r} is given twice", "give each name once")
        terms = {name: field(name) for name in names}
        terms |= {name: expression_of(term) for name, term in computed.items()}
        if not 1 <= len(terms) <= MOST_COLUMNS:
            raise refused("select", f"{len(terms)} fields are named", f"name 1 to {MOST_COLUMNS}")
        kinds = {name: kind_of("select", term, self.visible) for name, term in terms.items()}
        return replace(self.with_step(Select(fields=tuple(terms.items()))), columns=kinds)

    def group(self, *names: str) -> "Stream":
        """Group rows that are equal in these fields."""
        require_stage("group", self.stage)
        if not names or len(set(names)) != len(names):
            raise refused("group", f"the fields are {list(names)}", "name at least one, each once")
        groups = []
        for name in names:
            kind = require_column("group", self.columns, name)
            if kind not in IN_KEYS:
                raise refused(
                    "group",
                    f"{name!r} is of kind {kind.value!r}, which cannot be part of a key",
                    "select it as a text or a long before",
                )
            groups.append((name, kind))
        return replace(self, stage=Stage.GROUPED, groups=tuple(groups))

    def window(self, window: Window) -> "Stream":
        """Divide each group by the time of its rows."""
        require_stage("window", self.stage)
        if not isinstance(window, Window):
            raise refused(
                "window", f"{window!r} is not a window", "give tumbling('5m'), hopping or session"
            )
        return replace(self, stage=Stage.WINDOWED, windowed=window)

    def aggregate(self, **aggregates: Aggregate) -> "Stream":
        """Compute these aggregates of each group."""
        require_stage("aggregate", self.stage)
        if not 1 <= len(aggregates) <= MOST_COLUMNS:
            raise refused(
                "aggregate", f"{len(aggregates)} are given", f"give 1 to {MOST_COLUMNS} by name"
            )
        names = [*(name for name, _ in self.groups), *aggregates]
        require_names("aggregate", names)
        if len(set(names)) != len(names):
            raise refused("aggregate", "it has the name of a field of the group", "rename it")
        told = tuple(
            (name, aggregate, kind_of_aggregate(name, aggregate, self.visible))
            for name, aggregate in aggregates.items()
        )
        return replace(self, stage=Stage.AGGREGATED, aggregates=told)

    def final(self) -> "Stream":
        """Write each window once, when it has closed."""
        require_stage("final", self.stage)
        if self.windowed is None:
            raise refused(
                "final", "groups without a window never end", "add window, or leave final out"
            )
        return replace(self, stage=Stage.FINAL)

    def to(self, topic: str) -> Topology:
        """Write the result to a topic, and return the topology."""
        require_stage("to", self.stage)
        require_topic("to", topic)
        if topic in (self.source.topic, self.source.bad_records):
            raise refused(
                "to", f"{topic!r} is the topic of the stream or of its bad records", "name another"
            )
        is_final = self.stage is Stage.FINAL
        if self.windowed is not None and self.windowed.shape is Shape.SESSION and not is_final:
            raise refused(
                "to",
                "sessions would be written before they end, which Spark does not support",
                "add final() after aggregate",
            )
        grouping = None
        columns = tuple(self.columns.items())
        if self.stage is not Stage.ROWS:
            grouping = Grouping(
                fields=self.groups,
                window=self.windowed,
                aggregates=self.aggregates,
                is_final=is_final,
            )
            told = tuple((name, kind) for name, _, kind in self.aggregates)
            columns = grouping.key_columns + told
        topology = Topology(
            source=self.source, steps=self.steps, grouping=grouping, columns=columns, sink=topic
        )
        require_writable(topology)
        return topology

    @property
    def visible(self) -> Columns:
        """The fields that expressions may name."""
        return {**ALWAYS, **self.columns}

    def with_step(self, step: Where | Select) -> "Stream":
        if len(self.steps) == MOST_STEPS:
            raise refused(
                "stream", f"more than {MOST_STEPS} steps", "join conditions by &, and selects"
            )
        return replace(self, steps=(*self.steps, step))


def stream(
    topic: str,
    value: Format,
    *,
    time: str | None = None,
    grace: str = "0s",
    bad_records: str | None = None,
) -> Stream:
    """Read the records of a topic.

    `time` names the field with the event time; without it, the time of the record is used. `grace`
    is how late a record may arrive before its window closes. `bad_records` is the topic for values
    that do not fit the format; without it, they are dropped. Both are counted.
    """
    require_topic("stream", topic)
    if not isinstance(value, Format):
        raise refused("stream", f"{value!r} is not a format", "give json_format or text_format()")
    columns = dict(value.columns)
    if time is not None and require_column("stream", columns, time) is not Kind.TIME:
        raise refused(
            "stream",
            f"time={time!r} is of kind {columns[time].value!r}",
            "name a field of kind 'time', or leave it out for the time of the record",
        )
    if bad_records is not None:
        require_topic("stream", bad_records)
        if value.form is Form.BYTES or bad_records == topic:
            raise refused(
                "stream",
                f"bad_records={bad_records!r} is the stream's own topic, or of bytes",
                "name another topic; bytes are never bad",
            )
    source = Source(
        topic=topic,
        format=value,
        time=time,
        grace_ms=parse_duration("stream", grace, shortest_ms=0),
        bad_records=bad_records,
    )
    return Stream(source=source, columns=columns)


def require_stage(step: str, stage: Stage) -> None:
    stages, advice = FOLLOWS[step]
    if stage not in stages:
        raise refused(step, f"it cannot follow {stage.value}", advice)


def require_topic(step: str, topic: object) -> None:
    if not isinstance(topic, str) or not TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise refused(
            step,
            f"{topic!r} is not a valid topic name",
            "use up to 249 of letters, digits, '.', '_' and '-'",
        )


def require_writable(topology: Topology) -> None:
    if topology.is_raw:
        return
    for name, kind in topology.columns:
        if kind is Kind.BYTES:
            raise refused(
                "to",
                f"{name!r} is of kind 'bytes', which JSON cannot hold; the fields are"
                f" {shown(dict(topology.columns))}",
                "select it as_text, or as the only field and by the name 'value'",
            )
