"""A topic that is deleted and made again under its name: no offset of the former one counts."""

from connectors.runtime import sink_slice
from connectors.runtime.ports import Ending, SliceEnd, TaskSpec, Verdict
from connectors.sdk.records import TopicPartition
from tests.fakes.slice_plugins import ListSink, list_sink, plain_steps
from tests.fakes.slice_ports import FakePorts

IN = TopicPartition(topic="in", partition=0)


def run(plugin: type[ListSink], fakes: FakePorts) -> SliceEnd:
    spec = TaskSpec(connector="c", plugin=plugin, config={"topics": "in"})
    return sink_slice.run(spec, fakes.ports, plain_steps)


def test_what_was_left_out_of_the_former_topic_is_not_left_out_of_the_new_one() -> None:
    fakes = FakePorts(**{"in": 1})
    plugin = list_sink()
    fakes.wire.add("in", b"hidden", b"hidden")
    run(plugin, fakes)
    assert fakes.ports.memory["left out"] == {IN: (0, 2)}

    fakes.wire.make_anew("in")
    fakes.wire.add("in", b"a", b"b", b"c")
    run(plugin, fakes)

    assert plugin.values == ["a", "b", "c"]


def test_an_offset_that_was_committed_behind_the_deletion_does_not_count() -> None:
    fakes = FakePorts(**{"in": 1})
    plugin = list_sink()
    fakes.wire.add("in", b"old", b"old")
    run(plugin, fakes)

    fakes.wire.make_anew("in")
    fakes.wire.groups["connect-c"] = {IN: 2}
    fakes.wire.add("in", b"a", b"b", b"c")
    run(plugin, fakes)

    assert plugin.values == ["old", "old", "a", "b", "c"]
    assert fakes.wire.groups["connect-c"] == {IN: 3}
    assert any("in was deleted and recreated" in text for _, text in fakes.log.lines)


def test_a_topic_that_is_made_anew_while_a_slice_reads_it_ends_the_slice() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"old", b"old")
    plugin = list_sink()
    waits = iter([True])

    def make_anew(seconds: float) -> None:
        fakes.clock.now += seconds
        if next(waits, False):
            fakes.wire.make_anew("in")
            fakes.wire.add("in", b"a")

    fakes.clock.wait = make_anew  # type: ignore[method-assign]
    first = run(plugin, fakes)
    committed = dict(fakes.wire.groups["connect-c"])
    fakes.lease.verdicts = [Verdict.KEEP]
    run(plugin, fakes)

    assert first.ending is Ending.RETRY
    # Before the first record of the new topic told that it is one.
    assert committed == {IN: 2}
    assert plugin.values == ["old", "old", "a"]


def test_a_task_is_told_the_id_that_a_topic_had_as_its_slice_began() -> None:
    fakes = FakePorts(**{"in": 1})
    plugin = list_sink()
    fakes.wire.add("in", b"a")

    run(plugin, fakes)
    fakes.wire.make_anew("in")
    run(plugin, fakes)

    assert [context.topic_id("in") for context in plugin.contexts] == ["in", "in'"]
    assert plugin.contexts[0].topic_id("other") == ""
