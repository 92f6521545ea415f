"""What keeps a task from its work is counted over minutes of reading, and ends by a rule."""

from dataclasses import replace
from typing import Any

import pytest

from connectors.runtime import figures as names
from connectors.runtime.causes import OTHERS, Cause, cause_of
from connectors.runtime.condition import (
    MAX_CAUSES,
    WINDOW_MINUTES,
    Condition,
    Retrying,
    losing,
)
from connectors.runtime.figures import Figures
from connectors.runtime.record_parts import bare, shown
from connectors.runtime.steps import Stage, StepFailed
from connectors.sdk.errors import DataError, RecordError

NOW_MS = 1_700_000_000_000
BAD = Cause(text="bad", advice="mend it")


def minute_of(
    before: dict[str, Any], minute: int, *, read: int, bad: int = 0, dead: int = 0, era: str = "1/0"
) -> dict[str, Any]:
    """Return the condition after a slice that reads within one minute."""
    slice_figures = Figures()
    slice_figures.add(names.READ, read)
    slice_figures.add(names.DEAD, dead)
    for _ in range(bad):
        slice_figures.lose(BAD, otherwise=OTHERS)
    condition = Condition(before, retries=0, era=era, config="c")
    return condition.after(slice_figures, NOW_MS + 60_000 * minute)


def test_records_are_lost_until_enough_minutes_of_reading_lost_none() -> None:
    told = minute_of({}, 0, read=90)
    assert losing(told, era="1/0") is None

    told = minute_of(told, 1, read=10, bad=10, dead=9)
    found = losing(told, era="1/0")
    assert found is not None
    assert (found.read, found.lost, found.dropped_since, found.is_most) == (100, 10, 1, False)
    assert (found.since_ms, found.last_ms) == (NOW_MS + 60_000, NOW_MS + 60_000)
    assert [(one.text, one.advice, one.count) for one in found.causes] == [("bad", "mend it", 10)]

    # A day without a record mends nothing.
    for minute in range(1440, 1440 + WINDOW_MINUTES - 1):
        told = minute_of(told, minute, read=1)
        assert losing(told, era="1/0") is not None
    told = minute_of(told, 1440 + WINDOW_MINUTES, read=1)

    assert losing(told, era="1/0") is None
    assert len(told["losses"]["minutes"]) == WINDOW_MINUTES


def test_lost_records_whose_letters_are_on_their_way_are_not_kept_nowhere() -> None:
    slice_figures = Figures()
    slice_figures.add(names.READ, 10)
    slice_figures.lose(BAD, otherwise=OTHERS)
    for keeps_letters, dropped in ((True, 0), (False, 1)):
        condition = Condition({}, retries=0, era="e", config="c", keeps_letters=keeps_letters)
        found = losing(condition.after(slice_figures, NOW_MS), era="e")
        assert found is not None
        assert found.dropped_since == dropped


def test_half_of_the_records_is_most_of_them() -> None:
    assert losing(minute_of({}, 0, read=2, bad=1), era="1/0").is_most  # type: ignore[union-attr]
    assert not losing(minute_of({}, 0, read=3, bad=1), era="1/0").is_most  # type: ignore[union-attr]


def test_restart_and_another_config_start_over() -> None:
    told = minute_of({}, 0, read=5, bad=5)

    assert losing(told, era="1/1") is None
    assert losing(minute_of(told, 1, read=5, era="2/0"), era="2/0") is None
    assert losing(minute_of(told, 1, read=0), era="1/0") is not None


def test_reports_within_one_slice_count_each_record_once() -> None:
    slice_figures = Figures()
    condition = Condition({}, retries=0, era="1/0", config="c")
    for _ in range(3):
        slice_figures.add(names.READ, 2)
        slice_figures.lose(BAD, otherwise=OTHERS)
        told = condition.after(slice_figures, NOW_MS)

    found = losing(told, era="1/0")
    assert found is not None
    assert (found.read, found.lost, found.lost_since, found.causes[0].count) == (6, 3, 3, 3)


def test_causes_are_bounded_and_the_most_common_come_first() -> None:
    slice_figures = Figures()
    for number in range(3 * names.MAX_CAUSES):
        slice_figures.lose(Cause(text=f"cause {number}"), otherwise=OTHERS)
    slice_figures.lose(Cause(text="cause 7"), otherwise=OTHERS)

    told = Condition({}, retries=0, era="e", config="c").after(slice_figures, NOW_MS)

    found = losing(told, era="e")
    assert found is not None
    assert found.causes[0].text == "cause 7"
    assert [one.text for one in found.causes][MAX_CAUSES:] == [OTHERS.text]
    assert sum(one.count for one in found.causes) == 3 * names.MAX_CAUSES + 1


def test_config_remembers_that_it_has_worked_and_a_restart_forgets_failures() -> None:
    failing = Retrying(since_ms=1, tries=2, reason="away", next_ms=3)
    figures = Figures()
    figures.retrying, figures.has_worked = failing, True

    told = Condition({}, retries=0, era="1/0", config="c").after(figures, NOW_MS)

    assert Condition(told, retries=2, era="1/0", config="c").retrying == failing
    assert Condition(told, retries=0, era="1/1", config="c").retrying is None
    assert Condition(told, retries=0, era="1/1", config="c").has_worked
    other = Condition(told, retries=0, era="2/0", config="d")
    assert not other.has_worked
    again = {names.COMMITTED: 7, **other.after(Figures(), NOW_MS)}
    assert not Condition(again, retries=0, era="2/0", config="d").has_worked
    assert Condition({names.COMMITTED: 7}, retries=0, era="1/0", config="c").has_worked


@pytest.mark.parametrize(
    ("stage", "error", "cause"),
    [
        (
            Stage.KEY_CONVERTER,
            DataError('JsonConverter with schemas.enable requires "schema" and "payload" fields'),
            Cause(
                text="keys are plain JSON without a schema",
                advice="set key.converter.schemas.enable=false",
            ),
        ),
        (
            Stage.TASK_PUT,
            RecordError("PostgreSQL: value too long for type varchar(9): \"Ada O'Hara", index=0),
            Cause(text="PostgreSQL: value too long for type varchar(9): …"),
        ),
        (
            Stage.TRANSFORMATION,
            DataError("b'secret' of s3cret: 4 of '12' and 20241 isn't a number\nand more"),
            Cause(text="… of [hidden]: 4 of … and … isn't a number"),
        ),
    ],
)
def test_cause_is_named_without_what_the_record_holds(
    stage: Stage, error: Exception, cause: Cause
) -> None:
    found = cause_of(StepFailed(stage, "Class", error), ("s3cret",), ("orders",))

    assert replace(found, text=bare(found.text)) == cause


def test_cause_that_may_repeat_a_record_is_for_readers_of_its_topic() -> None:
    failed = StepFailed(
        Stage.TRANSFORMATION, "Class", DataError("Value (TOPSECRET-0) is not an int")
    )

    found = cause_of(failed, (), ("orders",))

    assert shown(found.text, lambda topics: "orders" in topics) == (
        "Value (TOPSECRET-0) is not an int"
    )
    assert "TOPSECRET" not in shown(found.text, lambda _topics: False)
