"""The walks of requests to a broker: frames that are made beforehand, over a socket."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from brokers.protocol.messages.find_coordinator import FindCoordinatorRequest
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.records.builder import BatchBuilder
from tests.fakes.broker_thread import BesideBroker
from tests.fakes.listener import request_frame
from tests.walks.tracer import TIMES, Tracer, Walk, common
from tests.wire import Wire

TOPIC: Final = "orders"
GROUPS: Final = [f"group-{number}" for number in range(TIMES + 1)]
# A group of one member is complete at once.
SOON: Final = {"group.initial.rebalance.delay.ms": "0"}
PRODUCE_VERSION, JOIN_VERSION, FIND_VERSION = 9, 3, 4
SIZE: Final = struct.Struct(">i")
# The cheapest request: API versions, without a client id.
VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def produce(tracer: Tracer, broker: BesideBroker) -> Walk:
    """Produce a batch, as the first request of a connection, which no express lane knows."""
    builder = BatchBuilder()
    builder.append(None, b"value", timestamp=1_790_000_000_000)
    records = memoryview(builder.build())
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    frame = request_frame(request, PRODUCE_VERSION)
    return on_the_wire(tracer, broker, [frame] * (TIMES + 1))


def join_group(tracer: Tracer, broker: BesideBroker) -> Walk:
    """Join an empty group, which is complete with that."""
    with Wire(broker.bootstrap) as wire:
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS)
        while any(one.error_code for one in wire.ask(asked, FIND_VERSION).coordinators):
            # The topic of the coordinator is being made.
            pass
    return on_the_wire(tracer, broker, [joining(name) for name in GROUPS])


def joining(group: str) -> bytes:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return request_frame(request, JOIN_VERSION)


def on_the_wire(tracer: Tracer, broker: BesideBroker, frames: Sequence[bytes]) -> Walk:
    """Send each frame over a connection of its own; the first one only warms up."""
    walks = []
    for frame in frames:
        with connected(broker) as link, tracer.recording() as walk:
            asked(link, frame)
        walks.append(walk)
    return common(walks[1:])


@contextmanager
def connected(broker: BesideBroker) -> Iterator[socket.socket]:
    host, _, port = broker.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as link:
        # The connection is accepted before anything is recorded.
        asked(link, VERSIONS)
        yield link


def asked(link: socket.socket, frame: bytes) -> bytes:
    link.sendall(frame)
    with link.makefile("rb", buffering=0) as stream:
        (size,) = SIZE.unpack(stream.read(SIZE.size))
        return stream.read(size)
