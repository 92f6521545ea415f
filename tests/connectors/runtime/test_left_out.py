"""Dead letters behind what a target knows: buried once, by another worker or config too."""

from collections.abc import Mapping

from connectors.runtime import sink_slice
from connectors.runtime.left_out import LeftOutNotes
from connectors.runtime.ports import TaskSpec
from connectors.sdk.records import SinkRecord, TopicPartition
from tests.fakes.slice_plugins import ListSink, list_sink, plain_steps
from tests.fakes.slice_ports import FakeOffsets, FakePorts

IN = TopicPartition(topic="in", partition=0)
TOLERANT = {
    "topics": "in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
}


def keeping_sink(target: dict[TopicPartition, int]) -> type[ListSink]:
    """Return a sink whose target keeps offsets, in a dictionary."""

    def keep(records: list[SinkRecord]) -> None:
        target.update({one.origin: one.origin_offset + 1 for one in records})

    made = list_sink(begin=target, put=keep)
    made.keeps_offsets = True
    return made


def run(fakes: FakePorts, plugin: type[ListSink], config: Mapping[str, str] = TOLERANT) -> None:
    sink_slice.run(TaskSpec(connector="c", plugin=plugin, config=config), fakes.ports, plain_steps)


def elsewhere(fakes: FakePorts) -> None:
    """Forget what the process remembers, as another worker has it."""
    fakes.memory.clear()
    fakes.kept.clear()


def test_another_worker_buries_no_record_again() -> None:
    fakes, target = FakePorts(**{"in": 1}), dict[TopicPartition, int]()
    fakes.wire.add("in", b"a", b"bad", b"bad")
    run(fakes, keeping_sink(target))

    elsewhere(fakes)
    run(fakes, keeping_sink(target))
    fakes.wire.add("in", b"b")
    run(fakes, keeping_sink(target))

    assert target == {IN: 4}
    assert fakes.wire.values("dead") == [b"bad", b"bad"]


def test_a_target_that_was_set_back_gets_all_that_comes_behind() -> None:
    fakes, target = FakePorts(**{"in": 1}), dict[TopicPartition, int]()
    fakes.wire.add("in", b"a", b"bad")
    run(fakes, keeping_sink(target))

    for begin in ({IN: 0}, {IN: 1}):
        elsewhere(fakes)
        target.clear()
        target.update(begin)
        run(fakes, keeping_sink(target))

    # At 0 the note was void; records skipped after that were noted again.
    assert fakes.wire.values("dead") == [b"bad", b"bad"]


def test_a_topic_that_was_made_anew_has_left_nothing_out() -> None:
    offsets = FakeOffsets()
    notes = LeftOutNotes(offsets, {"in": "1"}, is_kept=True)
    notes.write({IN: (1, 3)})

    same = LeftOutNotes(offsets, {"in": "1"}, is_kept=True).read([IN], {IN: 1})
    other = LeftOutNotes(offsets, {"in": "2"}, is_kept=True).read([IN], {IN: 1})
    voided = LeftOutNotes(offsets, {"in": "1"}, is_kept=True).read([IN], {IN: 1})

    assert (same, other, voided) == ({IN: (1, 3)}, {}, {})


def test_what_a_transform_leaves_out_costs_no_note() -> None:
    fakes, target = FakePorts(**{"in": 1}), dict[TopicPartition, int]()
    fakes.wire.add("in", b"a", b"hidden")

    run(fakes, keeping_sink(target))

    assert fakes.offsets.stored == {}


def test_where_the_group_alone_keeps_offsets_nothing_is_noted() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"bad")

    run(fakes, list_sink())

    assert fakes.offsets.stored == {}
    assert fakes.wire.groups["connect-c"] == {IN: 2}
