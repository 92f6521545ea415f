"""The cluster as slices ask it, over a broker in a thread."""

from collections.abc import Iterator

import pytest

from connectors.runtime import sink_slice, source_slice
from connectors.runtime.cluster_wire import ClusterWire
from connectors.runtime.ports import Ending, Ports, TaskSpec, Verdict
from connectors.sdk.records import TopicPartition
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered, NewRecord, NewTopic
from tests.fakes.broker_thread import broker_beside
from tests.fakes.slice_plugins import list_sink, list_source, plain_steps
from tests.fakes.slice_ports import FakePorts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterWire]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"a": 2}) as broker:
        yield ClusterWire(lambda: Connection(bootstrap=broker.bootstrap))


def ports(wire: ClusterWire, *verdicts: Verdict) -> Ports:
    fakes = FakePorts(*verdicts)
    made = fakes.ports
    return Ports(lease=made.lease, offsets=made.offsets, log=made.log, clock=made.clock, wire=wire)


def test_a_topic_is_created_once(wire: ClusterWire) -> None:
    made = NewTopic(name="made", partitions=3, replication_factor=1)

    first, second = wire.create(made), wire.create(made)

    assert (first, second) == (True, False)
    assert wire.topics()["made"] == 3


def test_a_topic_that_is_made_again_has_another_id(wire: ClusterWire) -> None:
    admin = Admin(wire._connect())  # noqa: SLF001 - to delete what no slice deletes
    wire.create(NewTopic(name="again", partitions=1, replication_factor=1))
    first = wire.topic_ids(["again", "not there"])

    admin.delete(["again"])
    is_gone = wire.topic_ids(["again"]) == {}
    wire.create(NewTopic(name="again", partitions=1, replication_factor=1))

    assert list(first) == ["again"]
    assert is_gone
    assert wire.topic_ids(["again"])["again"] not in {first["again"], ""}


def test_producers_with_the_same_settings_are_one(wire: ClusterWire) -> None:
    plain, also_plain = wire.outlet({}), wire.outlet({})

    assert plain is also_plain
    assert wire.outlet({"acks": "1"}) is not plain


def test_a_producer_creates_no_topic_where_brokers_would(wire: ClusterWire) -> None:
    outlet, told = wire.outlet({}), list[Delivered | KafkaFailure]()

    outlet.send("nowhere", NewRecord(value=b"a"), told.append)
    outlet.flush()

    assert wire.creates_topics()
    assert [type(one) for one in told] == [KafkaFailure]
    assert wire.topic_ids(["nowhere"]) == {}


def test_what_a_source_writes_a_sink_reads_and_commits(wire: ClusterWire) -> None:
    source = list_source(["x", "y", "z"], topic="a")
    sink = list_sink()
    written = source_slice.run(
        TaskSpec(connector="from", plugin=source, config={}),
        ports(wire, Verdict.KEEP, Verdict.KEEP, Verdict.KEEP, Verdict.YIELD),
        plain_steps,
    )

    read = sink_slice.run(
        TaskSpec(connector="to", plugin=sink, config={"topics": "a"}),
        ports(wire, *[Verdict.KEEP] * 12, Verdict.STOP),
        plain_steps,
    )

    assert written.ending in {Ending.IDLE, Ending.BUSY}
    assert read.ending is Ending.STOPPED
    assert sorted(sink.values) == ["x", "y", "z"]
    committed = wire.committed("connect-to")
    assert sum(committed.values()) == 3
    assert wire.bounds([TopicPartition(topic="a", partition=0)])
