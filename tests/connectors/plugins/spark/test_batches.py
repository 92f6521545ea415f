"""Which offsets a batch has, and what is remembered of it."""

import json
from dataclasses import replace

import pytest

from connectors.plugins.spark.batches import (
    Batch,
    Gone,
    Span,
    State,
    WrittenFile,
    adopt,
    done,
    dump,
    is_told,
    load,
    plan,
    shares,
    trimmed,
)
from connectors.plugins.spark.schemas import parse
from connectors.sdk.errors import ConnectorError
from connectors.sdk.records import TopicPartition

A, B, C = (TopicPartition(topic="orders", partition=number) for number in range(3))
FILE = WrittenFile(staged="x", path="y", size=1, rows=1, partition={"day": None})


def state(**fields: object) -> State:
    return replace(State(app="app"), **fields)  # type: ignore[arg-type]


def planned(before: State, bounds: dict[TopicPartition, tuple[int, int]]) -> State:
    after, _ = plan(before, bounds, most=100, at_end=False)
    return after


def test_a_batch_is_divided_as_evenly_as_partitions_have_something() -> None:
    assert shares({A: 1000, B: 5, C: 1000}, 100) == {A: 48, B: 5, C: 47}
    assert shares({A: 3, B: 0}, 100) == {A: 3, B: 0}


def test_more_partitions_than_offsets_take_turns() -> None:
    behind = {A: 1, B: 50, C: 1000}

    turns = [shares(behind, 2, turn=turn) for turn in range(3)]

    assert [sum(found.values()) for found in turns] == [2, 2, 2]
    assert turns == [{A: 1, B: 1, C: 0}, {A: 1, B: 0, C: 1}, {A: 0, B: 1, C: 1}]


def test_a_first_batch_begins_at_the_beginning_or_at_the_end() -> None:
    bounds = {A: (10, 20)}
    first = planned(state(), bounds)
    late, _ = plan(state(), bounds, most=100, at_end=True)

    assert first.batch == Batch(spans=(Span(place=A, start=10, end=20),))
    assert (late.batch, late.next) == (None, {A: 20})


def test_the_next_batch_begins_behind_the_last_one() -> None:
    behind = done(planned(state(), {A: (0, 20)}))

    assert (behind.number, behind.next, behind.batch) == (1, {A: 20}, None)
    assert planned(behind, {A: (0, 20)}).batch is None


def test_what_was_deleted_is_told_and_passed_over() -> None:
    after, lines = plan(state(next={A: 5}), {A: (8, 20)}, most=100, at_end=False)

    assert after.batch == Batch(spans=(Span(place=A, start=8, end=20),))
    assert lines[0].startswith("3 offsets of orders, partition 0, from 5 on, were deleted")


def test_a_topic_that_was_made_anew_ends_the_task() -> None:
    with pytest.raises(ConnectorError, match="recreated"):
        plan(state(next={A: 50}), {A: (0, 20)}, most=100, at_end=False)


def test_a_batch_that_is_run_again_loses_what_was_deleted_meanwhile() -> None:
    batch = Batch(spans=(Span(place=A, start=0, end=10), Span(place=B, start=0, end=10)))

    left, lines = trimmed(batch, {A: (4, 90), B: (30, 90)})

    assert left.spans == (Span(place=A, start=4, end=10),)
    assert len(lines) == 2


def test_a_batch_that_is_run_again_keeps_partitions_that_have_no_leader_now() -> None:
    batch = Batch(spans=(Span(place=A, start=0, end=10), Span(place=B, start=0, end=10)))

    left, lines = trimmed(batch, {A: (0, 90)})

    assert (left, lines) == (batch, [])


def test_a_new_job_begins_where_its_group_is() -> None:
    moved, is_moved = adopt(state(), {A: 7})

    assert (moved.next, is_moved) == ({A: 7}, False)


@pytest.mark.parametrize("committed", [{}, {A: 20}])
def test_a_commit_that_was_not_heard_of_moves_nobody(committed: dict[TopicPartition, int]) -> None:
    ours = state(next={A: 20}, told={})

    assert adopt(ours, committed) == (replace(ours, told=committed), False)


def test_a_group_that_has_lost_all_offsets_with_time_moves_nobody() -> None:
    ours = state(next={A: 20, B: 7}, told={A: 20, B: 7})

    kept, is_moved = adopt(ours, {})

    assert (kept.next, is_moved, is_told(kept)) == ({A: 20, B: 7}, False, False)


def test_two_batches_in_a_row_of_which_the_group_did_not_hear_in_time_move_nobody() -> None:
    # The commit of 20 was done, and its worker ended before it noted that.
    first, _ = adopt(state(next={A: 20}, told={A: 10}), {A: 20})

    # The next one ended between its batch and the commit of it.
    second, is_moved = adopt(replace(first, next={A: 30}), {A: 20})

    assert (second.next, is_moved) == ({A: 30}, False)
    assert (is_told(first), is_told(second)) == (True, False)


def test_partitions_that_nobody_altered_stay_where_they_are() -> None:
    ours = state(next={A: 20, B: 20, C: 5}, told={A: 20, B: 10})

    altered, _ = adopt(ours, {A: 3, B: 10})
    reset, _ = adopt(ours, {B: 10})

    assert altered.next == {A: 3, B: 20, C: 5}
    assert reset.next == {B: 20}


def test_rows_of_a_written_batch_are_not_read_again_where_nobody_altered_it() -> None:
    spans = (Span(place=A, start=20, end=30), Span(place=B, start=20, end=30))
    ours = state(next={A: 20, B: 20}, told={A: 20, B: 20}, batch=Batch(spans=spans, files=(FILE,)))

    once, _ = adopt(ours, {A: 3, B: 20})
    again, _ = adopt(once, {A: 3, B: 20})

    assert done(again).next == {A: 3, B: 30}


@pytest.mark.parametrize("name", ["staged", "path"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../../vault.key", "day=1/../../x", ""])
def test_a_state_that_names_files_elsewhere_is_not_read(name: str, path: str) -> None:
    forged = replace(FILE, staged=path) if name == "staged" else replace(FILE, path=path)
    batch = Batch(spans=(Span(place=A, start=0, end=9),), files=(forged,))

    with pytest.raises(ValueError, match="outside of the table"):
        load(dump(state(batch=batch)))


def test_offsets_that_somebody_altered_are_gone_on_from() -> None:
    pending = Batch(spans=(Span(place=A, start=20, end=30),))
    ours = state(next={A: 20}, told={A: 20}, batch=pending)

    moved, is_moved = adopt(ours, {A: 3})

    assert (moved.next, moved.batch, is_moved) == ({A: 3}, None, True)


def test_a_batch_that_is_written_is_finished_before_altered_offsets_count() -> None:
    pending = Batch(spans=(Span(place=A, start=20, end=30),), files=(FILE,))

    moved, _ = adopt(state(next={A: 20}, told={A: 20}, batch=pending), {A: 25})

    assert moved.batch is not None
    assert moved.batch.files == (FILE,)
    assert done(moved).next == {A: 25}


def test_a_state_is_read_back_as_it_was() -> None:
    spans = (Span(place=A, start=0, end=9),)
    batch = Batch(spans=spans, files=(FILE,), read=9, schema="{}", keeps_columns=True)
    kept = state(
        number=4,
        next={A: 0, B: 7},
        told={B: 7},
        epoch=3,
        columns=parse("OBJECT<a: ARRAY<BIGINT>>"),
        batch=batch,
        topics={"orders": "x"},
        gone={"c": Gone(id="y", next={C: 3}, told={C: 2})},
        most=7,
        ends=1,
    )

    assert load(dump(kept)) == kept


def test_a_batch_of_a_release_without_other_formats_is_read() -> None:
    kept = state(batch=Batch(spans=(), files=(FILE,)))
    told = json.loads(dump(kept))
    del told["batch"]["keeps_columns"]

    assert load(json.dumps(told).encode()) == kept


def test_a_state_of_a_former_release_is_read_without_ids_and_limits() -> None:
    batch = Batch(spans=(Span(place=A, start=0, end=9),))
    told = json.loads(dump(state(next={A: 0}, batch=batch)))
    for name in ("topics", "most", "ends"):
        del told[name]
    del told["batch"]["is_begun"]

    assert load(json.dumps(told).encode()) == state(next={A: 0}, batch=batch)
