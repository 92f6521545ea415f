"""A source of generated records at a fixed rate, the same ones after every restart."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from time import monotonic
from typing import Any, Final

from connectors.plugins.datagen.shapes import SHAPES
from connectors.sdk.checks import in_range, non_empty, one_of
from connectors.sdk.configs import Definition, Importance, Key, Kind, Value
from connectors.sdk.connector import Parsed, SourceConnector, SourceContext, SourceTask
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import Place, SourceRecord

TOPIC: Final = "topic"
QUICKSTART: Final = "quickstart"
RATE: Final = "records.per.second"
ITERATIONS: Final = "iterations"
SEED: Final = "random.seed"
KEY_FIELD: Final = "key.field"
TASK: Final = "task.number"

# The approximate rate of one core; use more tasks for higher rates.
MAX_RATE: Final = 100_000
# Takes some milliseconds, so that a slice can end in between.
MAX_BATCH: Final = 1000
# Records that were due while a task waited between slices are generated later; those that were due
# while the connector was paused are not.
MAX_CATCH_UP_S: Final = 30.0


def _key(name: str, kind: Kind, default: Any, doc: str, **more: Any) -> Key:
    return Key(
        name=name,
        kind=kind,
        default=default,
        importance=more.pop("importance", Importance.MEDIUM),
        doc=doc,
        group="Records",
        **more,
    )


def _key_field_problem(value: Any) -> str | None:
    names = {field.name for shape in SHAPES.values() for field in shape.schema.fields}
    if not value or value in names:
        return None
    return f"Name a field of the shape, one of {', '.join(sorted(names))}, or none for no key"


class Datagen(SourceConnector):
    name = "samsa.datagen"
    title = "Made-up records"
    summary = "Orders, users, page views or clicks, so many a second, to try things out with."

    @classmethod
    def definition(cls) -> Definition:
        return Definition(
            (
                Key(
                    name=TOPIC,
                    kind=Kind.STRING,
                    importance=Importance.HIGH,
                    doc="The topic to write to.",
                    check=non_empty,
                    group="Records",
                ),
                _key(
                    QUICKSTART,
                    Kind.STRING,
                    "orders",
                    f"The schema of the records: {', '.join(SHAPES)}.",
                    importance=Importance.HIGH,
                    check=one_of(*SHAPES),
                    recommend=lambda _values: list(SHAPES),
                ),
                _key(
                    RATE,
                    Kind.DOUBLE,
                    10.0,
                    "The number of records that each task generates in a second.",
                    importance=Importance.HIGH,
                    check=in_range(0.001, MAX_RATE),
                ),
                _key(
                    ITERATIONS,
                    Kind.LONG,
                    -1,
                    "The total number of records that each task generates; -1 for no end.",
                    check=in_range(-1),
                ),
                _key(
                    SEED,
                    Kind.LONG,
                    0,
                    "The same seed gives the same records.",
                    importance=Importance.LOW,
                ),
                _key(
                    KEY_FIELD,
                    Kind.STRING,
                    None,
                    "The field of the value that becomes the key; the shape's own unless it is "
                    "given, and no key where it is empty.",
                    check=_key_field_problem,
                ),
                _key(
                    TASK,
                    Kind.INT,
                    0,
                    "The number of this task.",
                    importance=Importance.LOW,
                    is_internal=True,
                ),
            )
        )

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed
        return [{TASK: str(number)} for number in range(max_tasks)]

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        shape, wanted = SHAPES.get(parsed.get(QUICKSTART, "")), parsed.get(KEY_FIELD)
        if shape is None or not wanted or shape.schema.field(wanted):
            return ()
        names = ", ".join(field.name for field in shape.schema.fields)
        wrong = f"{parsed[QUICKSTART]} has no field {wanted}; its fields are {names}"
        return (Value(name=KEY_FIELD, value=wanted, errors=(wrong,)),)

    def alter_offsets(self, parsed: Parsed, offsets: Mapping[str, Place | None]) -> None:
        del parsed
        for place, offset in offsets.items():
            number = 0 if offset is None else offset.get("number")
            if not isinstance(number, int) or number < 0:
                raise ConfigError(f'{place}: give {{"number": N}} with N from 0, not {offset}')

    def task(self) -> SourceTask:
        return DatagenTask()


class DatagenTask(SourceTask):
    """Generates the records that have become due since the last poll."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock

    def start(self, context: SourceContext, parsed: Parsed) -> None:
        self._shape = SHAPES[parsed[QUICKSTART]]
        self._topic: str = parsed[TOPIC]
        self._rate: float = parsed[RATE]
        self._last: int = parsed[ITERATIONS]
        self._seed = f"{parsed[SEED]}/{parsed[TASK]}"
        self._place = {"quickstart": parsed[QUICKSTART], "task": parsed[TASK]}
        self._key_schema = None
        wanted = parsed[KEY_FIELD]
        self._key_field = self._shape.key_field if wanted is None else wanted
        if field := self._shape.schema.field(self._key_field):
            self._key_schema = field.schema
        self._next = int((context.offset(self._place) or {"number": 0})["number"])
        # When the next record is due, by this process's clock.
        self._kept: dict[str, float] = context.kept.setdefault("datagen", {})
        self._kept.setdefault("due_at", self._clock() - 1 / self._rate)

    def poll(self) -> list[SourceRecord]:
        count = self._take_due()
        if self._last >= 0:
            count = min(count, self._last - self._next)
        first, self._next = self._next, self._next + max(count, 0)
        return [self._make(number) for number in range(first, self._next)]

    def _take_due(self) -> int:
        """Return the number of due records, and count them as generated."""
        now = self._clock()
        due_at = max(self._kept["due_at"], now - MAX_CATCH_UP_S)
        count = min(MAX_BATCH, int((now - due_at) * self._rate))
        self._kept["due_at"] = due_at + count / self._rate
        return count

    def _make(self, number: int) -> SourceRecord:
        # Not a secret: the records must be reproducible from the seed.
        random = Random(f"{self._seed}/{number}")  # noqa: S311
        value = self._shape.make(random, number)
        return SourceRecord(
            topic=self._topic,
            key=value[self._key_field] if self._key_schema else None,
            key_schema=self._key_schema,
            value=value,
            value_schema=self._shape.schema,
            source_partition=self._place,
            source_offset={"number": number + 1},
        )
