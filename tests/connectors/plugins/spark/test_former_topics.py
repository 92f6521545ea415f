"""No offset of a topic that was deleted counts for the one that was made under its name."""

from typing import Any

import pytest

from connectors.plugins.spark.batches import (
    Batch,
    Gone,
    Span,
    State,
    WrittenFile,
    adopt,
    done,
)
from connectors.plugins.spark.former_topics import leave, plan, settle
from connectors.runtime.job_slice import JobTaskContext
from connectors.runtime.ports import TaskSpec
from connectors.runtime.turn import Turn
from connectors.sdk.errors import RetriableError
from connectors.sdk.records import TopicPartition
from tests.connectors.runtime.test_job_slice import job
from tests.fakes.slice_ports import FakePorts

A, B = (TopicPartition(topic=name, partition=0) for name in ("a", "b"))
GROUP = "connect-c"
FILE = WrittenFile(staged="x", path="y", size=1, rows=1, partition={})


def context(fakes: FakePorts, **config: str) -> JobTaskContext:
    told = {"topics": "a,b", **{name.replace("_", "."): text for name, text in config.items()}}
    spec = TaskSpec(connector="c", plugin=job(), config=told)
    return JobTaskContext(Turn(spec, fakes.ports))


def cluster(records: int) -> FakePorts:
    fakes = FakePorts(a=1, b=1)
    for topic in ("a", "b"):
        fakes.wire.add(topic, *[b"x"] * records)
    return fakes


def state(**fields: Any) -> State:
    told = {"next": {A: 5, B: 5}, "told": {A: 5, B: 5}, "topics": {"a": "a", "b": "b"}}
    return State(app="app", **{**told, **fields})


def test_ids_are_learned_where_a_former_release_has_kept_none() -> None:
    settled, has_left = settle(context(cluster(9)), state(topics={}))

    assert (settled, has_left) == (state(), False)


def test_a_topic_made_anew_begins_at_its_start_and_the_group_is_told_first() -> None:
    fakes = cluster(9)
    fakes.wire.groups[GROUP] = {A: 5, B: 5}
    fakes.wire.make_anew("a")
    # A commit of ours that came in behind the deletion.
    fakes.wire.groups[GROUP][A] = 5
    fakes.wire.add("a", *[b"y"] * 20)

    settled, has_left = settle(context(fakes), state())

    assert has_left
    assert settled == state(next={A: 0, B: 5}, told={A: 0, B: 5}, topics={"a": "a'", "b": "b"})
    assert fakes.wire.groups[GROUP] == {A: 0, B: 5}
    assert any("a was deleted and recreated" in str(line) for line in fakes.log.lines)


def test_it_begins_at_its_end_where_new_topics_do() -> None:
    fakes = cluster(9)
    fakes.wire.make_anew("a")
    fakes.wire.add("a", b"y", b"z")

    settled, _ = settle(
        context(fakes, **{"consumer.override.auto.offset.reset": "latest"}), state()
    )

    assert settled.next == {A: 2, B: 5}


def test_an_offset_that_somebody_has_set_in_the_new_topic_stays() -> None:
    fakes = cluster(9)
    fakes.wire.make_anew("a")
    fakes.wire.add("a", *[b"y"] * 9)
    fakes.wire.groups[GROUP] = {A: 3, B: 5}

    settled, _ = settle(context(fakes), state())

    assert settled.next == {A: 3, B: 5}


def test_a_new_topic_whose_leader_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = cluster(9)
    fakes.wire.make_anew("a")
    monkeypatch.setattr(fakes.wire, "bounds", lambda _: {B: (0, 9)})

    with pytest.raises(RetriableError, match="partition 0 has no leader yet"):
        settle(context(fakes), state())


GONE = {"a": Gone(id="a", next={A: 5}, told={A: 5})}


def test_a_deleted_topic_is_set_aside_and_nothing_is_told_of_it() -> None:
    fakes = cluster(9)
    del fakes.wire.logs["a"]

    settled, has_left = settle(context(fakes), state())

    assert has_left
    assert settled == state(next={B: 5}, told={B: 5}, topics={"b": "b"}, gone=GONE)
    assert GROUP not in fakes.wire.groups
    # It is said once.
    assert settle(context(fakes), settled) == (settled, False)


def test_a_topic_that_a_broker_did_not_know_for_a_moment_is_read_on() -> None:
    away = state(next={B: 5}, told={B: 5}, topics={"b": "b"}, gone=GONE)

    settled, has_left = settle(context(cluster(9)), away)

    assert (settled, has_left) == (state(), True)


def test_a_topic_that_is_recreated_later_is_read_from_its_start() -> None:
    fakes = cluster(9)
    fakes.wire.make_anew("a")
    fakes.wire.add("a", *[b"y"] * 20)
    # The coordinator has not dropped the offset of the former topic.
    fakes.wire.groups[GROUP] = {A: 5, B: 5}
    away = state(next={B: 5}, told={B: 5}, topics={"b": "b"}, gone=GONE)

    settled, _ = settle(context(fakes), away)

    assert settled == state(next={A: 0, B: 5}, told={A: 0, B: 5}, topics={"a": "a'", "b": "b"})


def test_offsets_that_the_group_has_of_a_deleted_topic_are_not_taken_up() -> None:
    away = state(next={B: 5}, told={B: 5}, topics={"b": "b"}, gone=GONE)

    adopted, is_moved = adopt(away, {A: 5, B: 5})

    assert (adopted.next, is_moved) == ({B: 5}, False)


def test_rows_of_a_former_topic_that_are_written_stay_and_move_nothing() -> None:
    spans = (Span(place=A, start=5, end=9), Span(place=B, start=5, end=9))
    written = state(batch=Batch(spans=spans, files=(FILE,)))

    left = leave(written, {"a": "other", "b": "b"})

    assert left.state.batch is not None
    assert left.state.batch.files == (FILE,)
    assert done(left.state).next == {B: 9}


def test_a_batch_of_a_former_topic_that_is_not_written_is_none() -> None:
    pending = state(batch=Batch(spans=(Span(place=A, start=5, end=9),)))

    assert leave(pending, {"a": "other", "b": "b"}).state.batch is None


def test_a_topic_made_anew_while_its_ends_are_looked_up_is_looked_at_again() -> None:
    fakes = cluster(9)
    fakes.wire.make_anew("a")

    with pytest.raises(RetriableError, match="recreated while"):
        plan(context(fakes), state(), most=100)
