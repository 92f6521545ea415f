"""A topology: one topic read, what is done with each record, one topic written. Pure values.

It is a tree of steps without code, so it has a JSON form, and a fingerprint that identifies equal
topologies.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from spark_integration.streams.aggregates import Aggregate
from spark_integration.streams.expressions import Expression, json_of, text_of
from spark_integration.streams.fields import WINDOW_END, WINDOW_START, Kind
from spark_integration.streams.formats import VALUE, Format
from spark_integration.streams.windows import Window

# The version of the JSON form and of the steps' semantics: raised if results change.
EDITION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    topic: str
    format: Format
    # The field with the event time, or None for the time of the record.
    time: str | None
    # How late records may come, for windows.
    grace_ms: int
    # The topic for unchanged bad records; None drops them.
    bad_records: str | None

    def to_json(self) -> Any:
        return {
            "topic": self.topic,
            "format": self.format.to_json(),
            "time": self.time,
            "grace_ms": self.grace_ms,
            "bad_records": self.bad_records,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Where:
    condition: Expression

    def to_json(self) -> Any:
        return {"where": json_of(self.condition)}

    def describe(self) -> str:
        return f"where {text_of(self.condition)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Select:
    fields: tuple[tuple[str, Expression], ...]

    def to_json(self) -> Any:
        return {"select": [[name, json_of(expression)] for name, expression in self.fields]}

    def describe(self) -> str:
        return "select " + ", ".join(f"{name} = {text_of(term)}" for name, term in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    fields: tuple[tuple[str, Kind], ...]
    window: Window | None
    aggregates: tuple[tuple[str, Aggregate, Kind], ...]
    # Whether to write a group once, when its window has closed, instead of at each change.
    is_final: bool

    def to_json(self) -> Any:
        return {
            "group": [[name, kind.value] for name, kind in self.fields],
            "window": None if self.window is None else self.window.to_json(),
            "aggregate": [[name, aggregate.to_json()] for name, aggregate, _ in self.aggregates],
            "final": self.is_final,
        }

    @property
    def key_columns(self) -> tuple[tuple[str, Kind], ...]:
        spans = ((WINDOW_START, Kind.TIME), (WINDOW_END, Kind.TIME))
        return self.fields + (spans if self.window is not None else ())

    def describe(self) -> list[str]:
        lines = ["group " + ", ".join(name for name, _ in self.fields)]
        if self.window is not None:
            slide = f" by {self.window.slide_ms} ms" if self.window.slide_ms else ""
            lines.append(f"window {self.window.shape.value} {self.window.size_ms} ms{slide}")
        told = []
        for name, aggregate, _ in self.aggregates:
            argument = "" if aggregate.argument is None else text_of(aggregate.argument)
            limit = f", at most {aggregate.at_most}" if aggregate.at_most else ""
            told.append(f"{name} = {aggregate.function.value}({argument}{limit})")
        lines.append("aggregate " + ", ".join(told))
        return [*lines, "final"] if self.is_final else lines


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topology:
    source: Source
    steps: tuple[Where | Select, ...]
    grouping: Grouping | None
    # The fields to write, in this order.
    columns: tuple[tuple[str, Kind], ...]
    sink: str

    @property
    def is_raw(self) -> bool:
        """Whether the only field is the value itself, not a JSON object."""
        return self.grouping is None and self.columns in (
            ((VALUE, Kind.TEXT),),
            ((VALUE, Kind.BYTES),),
        )

    @property
    def key_is_text(self) -> bool:
        """Whether the only field of the group is the key itself, not a JSON object."""
        return self.grouping is not None and [kind for _, kind in self.grouping.key_columns] == [
            Kind.TEXT
        ]

    def to_json(self) -> Any:
        return {
            "edition": EDITION,
            "source": self.source.to_json(),
            "steps": [step.to_json() for step in self.steps],
            "grouping": None if self.grouping is None else self.grouping.to_json(),
            "columns": [[name, kind.value] for name, kind in self.columns],
            "sink": self.sink,
        }

    def fingerprint(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def describe(self) -> str:
        """Describe the topology, one step per line."""
        time = self.source.time or "the time of the record"
        lines = [f"stream {self.source.topic} ({self.source.format.form.value}, time {time})"]
        lines += [step.describe() for step in self.steps]
        if self.grouping is not None:
            lines += self.grouping.describe()
        return "\n".join([*lines, f"to {self.sink}"])


def differences(before: Any, after: Any, *, path: str = "") -> list[str]:
    """Return the differences of two JSON forms as lines."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for name in [*before, *(name for name in after if name not in before)]:
            inner = f"{path}.{name}" if path else name
            found += differences(before.get(name), after.get(name), path=inner)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for at, (a, b) in pairs for line in differences(a, b, path=f"{path}[{at}]")]
    if before == after and type(before) is type(after):
        return []
    return [f"{path}: was {json.dumps(before)}, is {json.dumps(after)}"]
