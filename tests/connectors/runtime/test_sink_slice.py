"""A slice of a sink over a cluster in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from connectors.runtime import sink_slice
from connectors.runtime.condition import FIRST_SUCCESS_S
from connectors.runtime.dead_letters import MAX_MESSAGE_CHARS
from connectors.runtime.ports import SHARE_S, SLICE_S, Ending, SliceEnd, TaskSpec, Verdict
from connectors.runtime.record_parts import bare
from connectors.sdk.errors import RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition
from gateway.kafka.errors import failure
from tests.fakes.slice_plugins import ListSink, list_sink, plain_steps
from tests.fakes.slice_ports import FakePorts

CONFIG = {"topics": "in"}
TOLERANT = {
    **CONFIG,
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
    "errors.deadletterqueue.context.headers.enable": "true",
}
IN = TopicPartition(topic="in", partition=0)


def run(
    plugin: type[ListSink],
    fakes: FakePorts,
    config: Mapping[str, str] = CONFIG,
    **spec: Any,
) -> SliceEnd:
    told = TaskSpec(connector="c", plugin=plugin, config=config, **spec)
    return sink_slice.run(told, fakes.ports, plain_steps)


def some(fakes: FakePorts, *verdicts: Verdict) -> None:
    fakes.lease.verdicts = list(verdicts)


def test_a_slice_puts_what_is_there_and_commits_behind_it() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b", b"hidden", b"c")
    plugin = list_sink()

    end = run(plugin, fakes)

    assert end.ending is Ending.IDLE
    assert plugin.values == ["a", "b", "c"]
    assert fakes.wire.groups["connect-c"] == {IN: 4}
    assert end.figures["records_filtered"] == 1
    assert end.topics == {"in"}
    assert plugin.stops == fakes.wire.closed == 1


def test_a_slice_takes_no_longer_than_its_time() -> None:
    fakes = FakePorts(**{"in": 1})
    began = fakes.clock.now

    run(list_sink(), fakes)

    assert SLICE_S <= fakes.clock.now - began < SLICE_S + 1


def test_offsets_that_the_target_keeps_win() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b", b"c")
    plugin = list_sink(begin={IN: 2})

    run(plugin, fakes)

    assert plugin.values == ["c"]


def test_partitions_are_shared_by_tasks_without_gaps() -> None:
    fakes = FakePorts(**{"in": 5, "more": 2})
    opened = []

    for number in range(3):
        plugin = list_sink()
        run(plugin, fakes, {"topics": "in,more"}, number=number, count=3)
        opened.append(plugin.opened)

    assert [len(places) for places in opened] == [3, 2, 2]
    assert len({place for places in opened for place in places}) == 7


def test_a_pattern_names_topics_and_no_internal_ones() -> None:
    fakes = FakePorts(**{"in-1": 1, "in-2": 1, "out": 1, "__in": 1})
    plugin = list_sink()

    run(plugin, fakes, {"topics.regex": ".*in.*"})

    assert [place.topic for place in plugin.opened] == ["in-1", "in-2"]


def test_a_record_that_cannot_be_converted_fails_the_task() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"bad")
    plugin = list_sink()

    end = run(plugin, fakes)

    assert end.ending is Ending.FAILED
    assert "VALUE_CONVERTER failed for topic in, partition 0, offset 1" in end.trace
    assert "this is bad" in end.trace
    # It was committed as the place to begin at, and nothing behind it.
    assert fakes.wire.groups["connect-c"] == {IN: 0}


def test_a_tolerant_connector_buries_bad_records_with_their_cause() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"bad", b"c", key=b"k")
    plugin = list_sink()

    end = run(plugin, fakes, TOLERANT)

    assert plugin.values == ["a", "c"]
    [[letter]] = fakes.wire.logs["dead"]
    assert (letter.key, letter.value) == (b"k", b"bad")
    headers = {name: (value or b"").decode() for name, value in letter.headers}
    assert headers["__connect.errors.stage"] == "VALUE_CONVERTER"
    assert headers["__connect.errors.offset"] == "1"
    assert headers["__connect.errors.exception.class.name"].endswith("DataException")
    assert fakes.wire.created[0].replication_factor == -1
    assert fakes.wire.groups["connect-c"] == {IN: 3}
    assert end.figures["dead_letters"] == 1


def test_a_dead_letter_topic_that_exists_is_not_created_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fakes = FakePorts(**{"in": 1, "dead": 1})
    fakes.wire.add("in", b"bad")
    attempts: list[object] = []
    monkeypatch.setattr(fakes.wire, "create", attempts.append)

    run(list_sink(), fakes, TOLERANT)

    assert fakes.wire.values("dead") == [b"bad"]
    assert attempts == []


def test_nothing_is_committed_behind_a_dead_letter_that_did_not_arrive() -> None:
    fakes = FakePorts(**{"in": 1, "dead": 1})
    fakes.wire.add("in", b"bad")
    fakes.wire.refuse = lambda topic, _: failure("NOT_ENOUGH_REPLICAS", topic)

    end = run(list_sink(), fakes, TOLERANT)

    assert end.ending is Ending.RETRY
    assert fakes.wire.groups["connect-c"] == {IN: 0}


def test_a_target_that_is_away_is_given_the_same_batch_again() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    attempts = []

    def put(records: list[SinkRecord]) -> None:
        attempts.append(len(records))
        if len(attempts) < 4:
            raise RetriableError("the target is away")

    plugin = list_sink(put=put)

    run(plugin, fakes)

    assert plugin.values == ["a"]
    assert attempts[:4] == [1, 1, 1, 1]
    assert fakes.clock.waits[:3] == [0.3, 0.6, 1.2]


def test_a_longer_wait_is_left_to_the_next_slice() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")

    def put(records: list[SinkRecord]) -> None:
        raise RetriableError("come back later", wait_s=25.0)

    end = run(list_sink(put=put), fakes, retries=3)

    assert (end.ending, end.wait_s, end.retries) == (Ending.RETRY, 25.0, 4)


def away(records: list[SinkRecord]) -> None:
    del records
    raise RetriableError("no answer to hunter2", wait_s=2.0)


def test_retries_say_since_when_and_when_again() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    began_ms = fakes.clock.now_ms()

    first = run(list_sink(put=away), fakes, secrets=("hunter2",))
    told = fakes.figures.retrying
    assert told is not None
    assert (told.reason, told.tries) == ("no answer to [hidden]", first.retries)
    assert began_ms <= told.since_ms < began_ms + 1000
    assert told.next_ms == fakes.clock.now_ms() + 2000
    run(list_sink(put=away), fakes, retries=first.retries)
    again = fakes.figures.retrying
    assert again is not None
    assert (again.since_ms, again.tries > told.tries) == (told.since_ms, True)

    run(list_sink(), fakes, retries=again.tries)
    assert fakes.figures.retrying is None


def test_task_that_never_reached_its_target_fails_in_the_end() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    gives_up_at = fakes.clock.now + FIRST_SUCCESS_S
    end = run(list_sink(put=away), fakes)
    while end.ending is Ending.RETRY:
        fakes.clock.now += 30
        end = run(list_sink(put=away), fakes, retries=end.retries)

    assert end.ending is Ending.FAILED
    assert fakes.clock.now >= gives_up_at
    assert end.trace.startswith("ConnectorError: no answer to hunter2; gave up after")
    assert "it has never worked with this config" in end.trace
    assert fakes.figures.retrying is None


def test_time_without_attempts_is_no_time_of_failures() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    before = run(list_sink(put=away), fakes)
    # The connector is paused, or the home is down over night.
    fakes.clock.now += 10 * FIRST_SUCCESS_S
    resumed_ms = fakes.clock.now_ms()

    end = run(list_sink(put=away), fakes, retries=before.retries)

    assert end.ending is Ending.RETRY
    told = fakes.figures.retrying
    assert told is not None
    assert (told.since_ms >= resumed_ms, told.tries) == (True, before.retries)


def test_task_that_reached_its_target_once_retries_without_an_end() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    run(list_sink(), fakes)
    fakes.wire.add("in", b"b")
    run(list_sink(put=away), fakes)
    fakes.clock.now += 100 * FIRST_SUCCESS_S

    assert run(list_sink(put=away), fakes, retries=5).ending is Ending.RETRY


def test_group_says_what_waits_while_the_target_was_never_reached() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b")

    end = run(list_sink(begin=RetriableError("no answer")), fakes)

    assert end.ending is Ending.RETRY
    assert fakes.wire.groups["connect-c"] == {IN: 0}


def test_any_other_error_fails_the_task_without_its_secrets() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")

    def put(records: list[SinkRecord]) -> None:
        raise OSError("cannot log in with hunter2")

    end = run(list_sink(put=put), fakes, secrets=("hunter2",))

    assert end.ending is Ending.FAILED
    assert bare(end.trace).startswith("OSError: cannot log in with [hidden]\n")
    assert "hunter2" not in f"{end.trace}{fakes.log.lines}"


def test_a_record_that_is_left_out_is_told_of_without_secrets() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")

    def put(records: list[SinkRecord]) -> None:
        # The limit of a message in a dead letter falls into the secret.
        raise RecordError(f"hunter2 {'x' * (MAX_MESSAGE_CHARS - 12)}hunter2", index=0)

    run(list_sink(put=put), fakes, {**TOLERANT, "errors.log.enable": "true"}, secrets=("hunter2",))

    [[letter]] = fakes.wire.logs["dead"]
    assert fakes.log.lines
    assert "hunt" not in f"{letter.headers}{fakes.log.lines}"


def test_a_task_that_is_told_to_stop_commits_what_it_has_put() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    plugin = list_sink()
    some(fakes, Verdict.KEEP, Verdict.KEEP, Verdict.STOP)

    end = run(plugin, fakes)

    assert end.ending is Ending.STOPPED
    assert fakes.wire.groups["connect-c"] == {IN: len(plugin.values)}


def test_only_what_the_task_made_durable_is_committed() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b", b"c")

    run(list_sink(flush=lambda: {IN: 2}), fakes)

    assert fakes.wire.groups["connect-c"] == {IN: 2}


def test_where_others_wait_an_idle_task_opens_nothing() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    plugin = list_sink()
    run(plugin, fakes)
    some(fakes, Verdict.YIELD)

    end = run(plugin, fakes, idle_slices=3)

    assert fakes.wire.opened == 1
    assert (end.ending, end.wait_s, end.idle_slices) == (Ending.IDLE, 1.6, 4)


def test_where_others_wait_an_idle_task_that_is_to_let_go_is_opened() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    plugin = list_sink()
    run(plugin, fakes)
    some(fakes, Verdict.YIELD)
    fakes.held.is_asked = True

    run(plugin, fakes)

    assert fakes.wire.opened == 2


def test_where_others_wait_a_topic_that_was_made_anew_is_new() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b")
    plugin = list_sink()
    run(plugin, fakes)
    fakes.wire.logs["in"] = [[]]
    fakes.wire.add("in", b"c")
    some(fakes, Verdict.YIELD)

    run(plugin, fakes)

    assert fakes.wire.opened == 2


def test_where_others_wait_records_that_are_there_are_waited_for() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    plugin = list_sink()
    run(plugin, fakes)
    fakes.wire.add("in", b"b")
    # A new consumer connects for longer than one look takes.
    fakes.wire.silent_looks = 1
    some(fakes, Verdict.YIELD)

    end = run(plugin, fakes, idle_slices=3)

    assert plugin.values == ["a", "b"]
    assert (end.ending, end.idle_slices) == (Ending.IDLE, 0)


def test_where_others_wait_records_that_do_not_come_are_left_to_the_next_slice() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    plugin = list_sink()
    fakes.wire.silent_looks = 1000
    some(fakes, Verdict.YIELD)
    began = fakes.clock.now

    end = run(plugin, fakes, idle_slices=3)

    assert (end.ending, end.wait_s, end.idle_slices) == (Ending.IDLE, 1.6, 4)
    assert fakes.clock.now - began < 2 * SHARE_S


def test_where_others_wait_an_empty_topic_is_not_waited_for() -> None:
    fakes = FakePorts(**{"in": 2})
    fakes.wire.silent_looks = 1000
    some(fakes, Verdict.YIELD)
    began = fakes.clock.now

    run(list_sink(), fakes)

    assert fakes.clock.now - began < SHARE_S / 2


def test_where_others_wait_a_partition_without_a_leader_is_read_later() -> None:
    fakes = FakePorts(**{"in": 2})
    fakes.wire.add("in", b"a")
    fakes.wire.add("in", b"b", partition=1)
    some(fakes, Verdict.YIELD)
    bounds, calls = fakes.wire.bounds, []

    def led(places: Sequence[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        calls.append(places)
        found = dict(bounds(places))
        if len(calls) == 2:
            del found[TopicPartition(topic="in", partition=1)]
        return found

    fakes.wire.bounds = led  # type: ignore[method-assign]
    plugin = list_sink()

    end = run(plugin, fakes)

    assert end.ending is Ending.IDLE
    assert plugin.values == ["a"]


def test_where_others_wait_a_task_that_starts_slowly_comes_to_its_records() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    fakes.wire.slow_inlet_s = 2 * SHARE_S
    plugin = list_sink()
    some(fakes, Verdict.YIELD)

    run(plugin, fakes)

    assert plugin.values == ["a"]


def test_where_nobody_waits_no_ends_are_asked_for() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    fakes.wire.groups["connect-c"] = {IN: 0}
    asked: list[object] = []
    bounds = fakes.wire.bounds
    fakes.wire.bounds = lambda places: (  # type: ignore[method-assign]
        asked.extend(places) or bounds(places)  # type: ignore[func-returns-value]
    )

    run(list_sink(), fakes)

    assert asked == []


def test_where_others_wait_a_busy_task_has_its_share_only() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", *[b"x"] * 1000)
    plugin = list_sink()
    some(fakes, Verdict.YIELD)

    end = run(plugin, fakes, {**CONFIG, "consumer.override.max.poll.records": "1"})

    assert end.ending is Ending.BUSY
    assert 0 < len(plugin.values) < 200


def test_a_task_can_go_back_in_its_topic() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b")
    seen = []

    def put(records: list[SinkRecord]) -> None:
        seen.append([record.value for record in records])
        if len(seen) == 1:
            plugin.contexts[0].seek(IN, 1)

    plugin = list_sink(put=put)

    run(plugin, fakes)

    assert seen == [["a", "b"], ["b"]]


def test_a_new_group_begins_at_the_end_where_the_config_says_so() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"old")
    plugin = list_sink()
    config = {**CONFIG, "consumer.override.auto.offset.reset": "latest"}
    run(plugin, fakes, config)
    fakes.wire.add("in", b"new")

    run(plugin, fakes, config)

    assert plugin.values == ["new"]


def test_what_was_put_before_a_failure_is_committed() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"b", b"c")

    def put(records: list[SinkRecord]) -> None:
        if records[0].value == "c":
            raise RetriableError("away", wait_s=60)

    end = run(list_sink(put=put), fakes, {**CONFIG, "consumer.override.max.poll.records": "1"})

    assert end.ending is Ending.RETRY
    assert fakes.wire.groups["connect-c"] == {IN: 2}


def test_what_the_task_never_sees_is_committed_behind_what_it_made_durable() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"bad", b"hidden")

    run(list_sink(flush=lambda: {IN: 1}), fakes, TOLERANT)

    assert fakes.wire.groups["connect-c"] == {IN: 3}
    assert fakes.wire.values("dead") == [b"bad"]


def test_what_the_task_still_holds_is_not_committed_by_what_it_never_sees() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"hidden")

    run(list_sink(flush=lambda: {IN: 0}), fakes)

    assert fakes.wire.groups["connect-c"] == {IN: 0}


def test_a_record_is_buried_once_though_the_target_knows_nothing_of_it() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"bad")
    run(list_sink(flush=lambda: {IN: 1}), fakes, TOLERANT)
    plugin = list_sink(begin={IN: 1}, flush=lambda: {IN: 1 + 2 * len(plugin.values)})

    run(plugin, fakes, TOLERANT)
    fakes.wire.add("in", b"c")
    run(plugin, fakes, TOLERANT)

    assert fakes.wire.values("dead") == [b"bad"]
    assert plugin.values == ["c"]
    assert fakes.wire.groups["connect-c"] == {IN: 3}


def test_a_group_that_begins_with_what_is_left_out_goes_on_behind_it() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"bad", b"hidden")

    run(list_sink(flush=dict), fakes, TOLERANT)
    run(list_sink(flush=dict), fakes, TOLERANT)

    assert fakes.wire.values("dead") == [b"bad"]
    assert fakes.wire.groups["connect-c"] == {IN: 2}


def test_a_task_whose_topics_are_not_there_waits_for_them_outside_of_its_slice() -> None:
    fakes = FakePorts()
    plugin = list_sink()

    end = run(plugin, fakes, idle_slices=2)

    assert (end.ending, end.wait_s, end.idle_slices) == (Ending.IDLE, 0.8, 3)
    assert plugin.contexts == []


def test_a_record_whose_headers_cannot_be_read_is_not_passed_on_without_them() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")
    fakes.wire.logs["in"][0][0] = replace(fakes.wire.logs["in"][0][0], has_unread_headers=True)

    end = run(list_sink(), fakes)

    assert end.ending is Ending.FAILED
    assert "HEADER_CONVERTER failed" in end.trace
