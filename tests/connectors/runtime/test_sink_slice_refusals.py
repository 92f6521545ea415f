"""A slice of a sink whose task rejects records of a batch, and writes the others."""

from connectors.runtime.ports import Ending
from connectors.sdk.errors import RecordError
from connectors.sdk.records import SinkRecord
from tests.connectors.runtime.test_sink_slice import IN, TOLERANT, run
from tests.fakes.slice_plugins import list_sink
from tests.fakes.slice_ports import FakePorts


def test_task_goes_on_with_a_batch_of_which_it_rejects_a_record() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"refuse", b"c")
    puts = []

    def put(records: list[SinkRecord]) -> None:
        puts.append(len(records))
        context = plugin.contexts[-1]
        for record in records:
            if record.value == "refuse":
                context.refuse(record, RecordError("not this one", index=0))
        context.settle()
        assert len(fakes.wire.values("dead")) == 1

    plugin = list_sink(put=put)

    end = run(plugin, fakes, TOLERANT)

    assert puts == [3]
    assert fakes.wire.values("dead") == [b"refuse"]
    assert fakes.wire.groups["connect-c"] == {IN: 3}
    assert (end.figures["records_written"], end.figures["dead_letters"]) == (2, 1)


def test_rejected_record_fails_a_task_that_tolerates_no_errors() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"refuse")

    def put(records: list[SinkRecord]) -> None:
        plugin.contexts[-1].refuse(records[1], RecordError("not this one", index=1))

    plugin = list_sink(put=put)

    end = run(plugin, fakes)

    assert end.ending is Ending.FAILED
    assert "TASK_PUT failed for topic in, partition 0, offset 1" in end.trace
    assert fakes.wire.groups["connect-c"] == {IN: 0}


def test_a_record_that_the_task_refuses_is_buried_and_the_others_are_put() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"refuse", b"c")

    def put(records: list[SinkRecord]) -> None:
        for index, record in enumerate(records):
            if record.value == "refuse":
                raise RecordError("not this one", index=index)

    plugin = list_sink(put=put)

    run(plugin, fakes, TOLERANT)

    assert plugin.values == ["a", "c"]
    assert fakes.wire.values("dead") == [b"refuse"]
