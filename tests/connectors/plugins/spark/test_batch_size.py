"""A batch that was ended for lack of time or memory is smaller next time, and grows back slowly."""

import json
from dataclasses import replace

import pytest

from connectors.plugins.spark.batch_size import MAX_ENDS, grown, limit, shrunk, spared, unbegun
from connectors.plugins.spark.batches import Batch, Span, State, done, dump, load
from connectors.sdk.errors import ConnectorError
from connectors.sdk.records import TopicPartition

A, B = (TopicPartition(topic="orders", partition=number) for number in range(2))


def begun(*spans: tuple[TopicPartition, int, int]) -> State:
    batch = Batch(spans=tuple(Span(place=at, start=a, end=b) for at, a, b in spans), is_begun=True)
    return State(app="app", batch=batch, next={at: a for at, a, _ in spans})


def test_the_next_attempt_is_a_quarter_and_begins_at_the_same_offsets() -> None:
    smaller, line = shrunk(begun((A, 10, 90), (B, 5, 25)), "Spark ended")

    assert smaller.batch == Batch(
        spans=(Span(place=A, start=10, end=22), Span(place=B, start=5, end=18))
    )
    assert (smaller.most, limit(smaller, 500_000), limit(State(app="a"), 500)) == (25, 25, 500)
    assert line == "Spark ended: it had 100 offsets, and is tried again with 25"


def test_what_was_learned_is_kept_with_the_state() -> None:
    smaller, _ = shrunk(begun((A, 0, 100)), "Spark ended")

    assert load(dump(smaller)) == smaller


def test_a_state_of_a_former_release_names_nobody_who_began_its_batch() -> None:
    told = json.loads(dump(begun((A, 0, 100))))
    del told["batch"]["begun_by"], told["batch"]["spared"]

    assert load(json.dumps(told).encode()) == begun((A, 0, 100))


def test_a_spared_batch_is_kept_with_how_often_it_was() -> None:
    again, line = spared(begun((A, 0, 100)))

    assert again.batch is not None
    assert (again.batch.size, again.batch.is_begun, again.batch.spared) == (100, False, 1)
    assert load(dump(again)) == again
    assert line.endswith("it is tried again with its 100 offsets")


def test_ten_attempts_lead_from_the_default_to_one_record() -> None:
    state, attempts = begun((A, 0, 500_000)), 0
    while state.batch is not None and state.batch.size > 1:
        state, _ = shrunk(state, "")
        attempts += 1

    assert attempts <= 10


def test_one_record_that_never_fits_ends_the_task_with_its_place() -> None:
    state = begun((A, 7, 8))
    for _ in range(MAX_ENDS - 1):
        state, line = shrunk(state, "Spark ended")

    assert line.endswith("time 3 of 3")
    with pytest.raises(ConnectorError, match="3 times with the one record at orders, partition 0,"):
        shrunk(state, "Spark ended")


def test_ends_in_a_row_are_forgotten_once_a_batch_is_done() -> None:
    state, _ = shrunk(begun((A, 7, 8)), "Spark ended")

    assert done(state).ends == 0


def test_it_grows_back_by_full_batches_that_are_done_soon_until_the_config_bounds_it() -> None:
    state = replace(State(app="app"), most=80)

    assert grown(state, size=79, configured=500, took_s=1).most == 80
    assert grown(state, size=80, configured=500, took_s=300).most == 80
    assert grown(state, size=80, configured=500, took_s=1).most == 90
    assert grown(state, size=80, configured=85, took_s=1).most == 0


def test_a_batch_that_failed_for_another_reason_keeps_its_size() -> None:
    state = begun((A, 0, 100))

    again = unbegun(state)

    assert again.batch is not None
    assert (again.batch.size, again.batch.is_begun) == (100, False)
