"""Made-up records come at their rate, and are the same ones after every restart."""

from itertools import count
from typing import Any

import pytest

from connectors.plugins.datagen.connector import Datagen, DatagenTask
from connectors.plugins.datagen.shapes import SHAPES
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import SourceRecord
from connectors.sdk.testing import MemorySourceContext, parse_config


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def parsed(**values: str) -> dict[str, Any]:
    return parse_config(Datagen.definition(), {"topic": "made", **values})


def started(clock: Clock, context: MemorySourceContext, **values: str) -> DatagenTask:
    task = DatagenTask(clock)
    task.start(context, parsed(**values))
    return task


def make(number: int, **values: str) -> list[SourceRecord]:
    clock, context = Clock(), MemorySourceContext()
    task = started(clock, context, **{"records.per.second": "1000", **values})
    made: list[SourceRecord] = []
    for _ in count():
        clock.now += 1
        made += task.poll()
        if len(made) >= number:
            return made[:number]
    raise AssertionError


@pytest.mark.parametrize("quickstart", list(SHAPES))
def test_the_same_seed_makes_the_same_records(quickstart: str) -> None:
    first = make(50, quickstart=quickstart)

    assert first == make(50, quickstart=quickstart)
    assert first != make(50, quickstart=quickstart, **{"random.seed": "1"})


@pytest.mark.parametrize("quickstart", list(SHAPES))
def test_a_slice_goes_on_where_the_stored_offset_says(quickstart: str) -> None:
    whole = make(20, quickstart=quickstart)
    context = MemorySourceContext()
    context.store(whole[:7])
    clock = Clock()

    task = started(clock, context, quickstart=quickstart, **{"records.per.second": "13"})
    clock.now += 1

    assert task.poll()[:13] == whole[7:20]


def test_records_come_at_their_rate() -> None:
    clock, context = Clock(), MemorySourceContext()
    task = started(clock, context, **{"records.per.second": "4"})

    made = [len(task.poll())]
    for seconds in (0.1, 0.15, 0.25, 1):
        clock.now += seconds
        made.append(len(task.poll()))

    assert made == [1, 0, 1, 1, 4]


def test_what_was_due_between_slices_is_made_up_for_and_a_pause_is_not() -> None:
    clock, context = Clock(), MemorySourceContext()
    first = started(clock, context, **{"records.per.second": "2"})
    context.store(first.poll())
    clock.now += 5
    second = started(clock, context, **{"records.per.second": "2"})
    made = second.poll()
    context.store(made)
    clock.now += 3600
    third = started(clock, context, **{"records.per.second": "2"})

    assert len(made) == 10
    assert len(third.poll()) == 60


def test_iterations_end_the_records() -> None:
    clock, context = Clock(), MemorySourceContext()
    task = started(clock, context, iterations="3", **{"records.per.second": "100"})

    clock.now += 1
    made = task.poll()
    clock.now += 1

    assert [record.source_offset["number"] for record in made] == [1, 2, 3]
    assert task.poll() == []


def test_a_field_becomes_the_key() -> None:
    (own,), (named,), (none,) = (
        make(1, **values) for values in ({}, {"key.field": "itemid"}, {"key.field": ""})
    )

    assert own.key == own.value["orderid"]
    assert named.key == named.value["itemid"]
    assert none.key is none.key_schema is None


def test_tasks_make_records_of_their_own() -> None:
    connector = Datagen()

    configs = connector.task_configs(parsed(), max_tasks=2)
    first, second = (make(5, **config) for config in configs)

    assert [record.value for record in first] != [record.value for record in second]
    assert first[0].source_partition != second[0].source_partition


def test_a_key_field_of_another_shape_is_refused_with_the_fields_of_this_one() -> None:
    (wrong,) = Datagen().validate(parsed(quickstart="users", **{"key.field": "orderid"}))

    assert wrong.name == "key.field"
    assert wrong.errors == (
        "users has no field orderid; its fields are registertime, userid, regionid, gender",
    )


def test_an_offset_that_is_no_number_is_refused() -> None:
    Datagen().alter_offsets(parsed(), {"made": {"number": 5}, "other": None})

    with pytest.raises(ConfigError, match="made"):
        Datagen().alter_offsets(parsed(), {"made": {"number": -1}})
