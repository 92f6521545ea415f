"""Frames between broker and agent: what goes in comes out, and nonsense is only that."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from random import Random
from typing import get_args

import msgspec
import pytest

from brokers.cluster import changes, link, proposals
from brokers.cluster.changes import Change
from brokers.cluster.image import (
    Broker,
    ClusterImage,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
)
from brokers.cluster.proposals import (
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Expectation,
    Outcome,
    ProducerIdsResult,
    Proposal,
    Subject,
    TopicResult,
)
from brokers.cluster.snapshot import Piece, TopicPiece
from brokers.cluster.store import Registered, Registration
from brokers.cluster.updates import Assembly
from brokers.protocol.errors import ErrorCode
from tests.fakes.twin import Twin
from tests.scale import count

ID = bytes(range(16))
STATE = PartitionState(replicas=(1,), isr=(1,), leader=1, leader_epoch=7, partition_epoch=300)
POSITION = Position(70_000, ID)

FROM_BROKER: tuple[link.FromBroker, ...] = (
    link.Register(registration=Registration(incarnation=ID, host="h", port=9092)),
    link.Register(
        registration=Registration(
            incarnation=ID,
            host="höst",
            port=1,
            broker_id=3,
            cluster_id="c",
            log_dir_id=ID,
            rack="r",
            inspection_port=2,
            boot_id="b",
            pid=77,
            clean_epoch=2**40,
        )
    ),
    link.Follow(after=Position()),
    link.Propose(
        request_no=2**40,
        proposals=tuple(
            Proposal(id=ID, action=action, actor="User:alice", validate_only=True)
            for action in (
                CreateTopic(name="t", partitions=3, configs=(("a", "b"), ("c", None))),
                CreateTopic(name="t", assignments=((1, 2), (3,))),
                DeleteTopic(name="t"),
                DeleteTopic(topic_id=ID),
                CreatePartitions(name="t", count=9, assignments=()),
                AlterConfigs(
                    resource_type=ResourceType.BROKER,
                    name="",
                    edits=(ConfigEdit(key="k", operation=ConfigOperation.APPEND, value="v"),),
                    replaces_all=True,
                ),
                AllocateProducerIds(),
            )
        ),
    ),
    link.Applied(version=5),
    link.Pong(),
)
FROM_AGENT: tuple[link.FromAgent, ...] = (
    Registered(broker_id=1, broker_epoch=2, cluster_id="c", version=2),
    link.Refused(error=ErrorCode.DUPLICATE_BROKER_REGISTRATION, message="why"),
    link.SnapshotBegin(cluster_id="c", position=POSITION),
    link.SnapshotPart(pieces=()),
    link.SnapshotEnd(position=POSITION),
    link.ChangeFrame(position=POSITION, records=(), is_last=False),
    link.Outcomes(
        request_no=1,
        outcomes=(
            Outcome(error=ErrorCode.INVALID_CONFIG, message="why", version=9),
            Outcome(result=TopicResult(name="t", topic_id=ID, partitions=1, replication_factor=1)),
            Outcome(result=ProducerIdsResult(first=2**60, count=1000)),
            Outcome(),
        ),
    ),
    link.Outcomes(request_no=1, outcomes=(), is_later=True),
    link.Ping(db_age_ms=3),
)
RECORDS: tuple[changes.Record, ...] = (
    changes.BrokerChanged(Broker(id=1, epoch=2, host="h", port=3, rack="r", is_fenced=False)),
    changes.BrokerRemoved(4),
    changes.TopicCreated("t", ID, (STATE, STATE)),
    changes.PartitionsAdded(ID, 2, (STATE,)),
    changes.PartitionChanged(ID, 1, STATE),
    changes.TopicRemoved("t", ID),
    changes.ConfigsChanged(ResourceType.TOPIC, "t", (("k", "v"),)),
)
PIECES: tuple[Piece, ...] = (
    Broker(id=1, epoch=2, host="h", port=3),
    TopicPiece(name="t", id=ID, version=5, first_index=0, partitions=(STATE,)),
    changes.ConfigsChanged(ResourceType.TOPIC, "t", ()),
    DeletedTopic(name="t", id=ID, version=4),
)


def name_of(value: object) -> str:
    return type(value).__name__


def body(frame: bytes) -> bytes:
    (size,) = link.LENGTH.unpack_from(frame)
    assert size == len(frame) - link.LENGTH.size
    return frame[link.LENGTH.size :]


def packed(*pieces: Piece) -> list[bytes]:
    """The form that pieces have on the wire."""
    (group,) = link._grouped(pieces, link.MAX_FRAME)  # noqa: SLF001 - it has no other door
    return [bytes(raw) for raw in group]


@pytest.mark.parametrize("message", FROM_BROKER, ids=name_of)
def test_messages_of_a_broker_survive_encoding(message: link.FromBroker) -> None:
    assert link.decode_from_broker(body(link.encode(message))) == message


@pytest.mark.parametrize("message", FROM_AGENT, ids=name_of)
def test_messages_of_an_agent_survive_encoding(message: link.FromAgent) -> None:
    assert link.decode_from_agent(body(link.encode(message))) == message


def test_a_change_arrives_with_all_its_records() -> None:
    change = Change(POSITION, RECORDS)

    (frame,) = link.FrameReader(link.decode_from_agent).feed(link.encode_change(change))

    assert isinstance(frame, link.ChangeFrame)
    assert frame.position == POSITION
    assert tuple(map(link.decode_record, frame.records)) == RECORDS
    assert {type(record) for record in RECORDS} == set(get_args(changes.Record))


def test_pieces_of_a_snapshot_arrive() -> None:
    assert tuple(link.decode_piece(msgspec.Raw(each)) for each in packed(*PIECES)) == PIECES
    assert {type(piece) for piece in PIECES} == set(get_args(Piece))


def test_every_type_of_a_union_has_its_own_tag() -> None:
    among_others = {
        *get_args(link.FromBroker),
        *get_args(link.FromAgent),
        *get_args(changes.Record),
        *get_args(Piece),
        *get_args(proposals.Action),
        *get_args(proposals.Result),
    } - {type(None)}

    assert among_others == set(link.TAGS)
    assert len(set(link.TAGS.values())) == len(link.TAGS)


def test_a_change_of_any_size_comes_in_frames_of_the_allowed_size() -> None:
    records = tuple(
        changes.BrokerChanged(Broker(id=number, epoch=1, host="h" * 300_000, port=1))
        for number in range(8)
    )

    data = link.encode_change(Change(POSITION, records))
    frames = list(link.FrameReader(link.decode_from_agent).feed(data))

    taken: list[changes.Record] = []
    for frame in frames:
        assert isinstance(frame, link.ChangeFrame)
        assert frame.position == POSITION
        assert frame.is_last is (frame is frames[-1])
        taken += map(link.decode_record, frame.records)
    assert len(frames) > 1
    assert tuple(taken) == records


def test_the_parts_of_a_snapshot_are_small() -> None:
    twin = Twin()
    twin.register_now()
    for number in range(10):
        twin.create_topic(f"topic-{number}", partitions=300, configs={"retention.ms": "5"})
    twin.create_topic("largest", partitions=5000)

    frames = list(link.encode_snapshot(twin.image))

    assert max(map(len, frames)) <= link.MAX_SNAPSHOT_PART
    assert received(frames) == twin.image


def received(frames: list[bytes]) -> ClusterImage:
    """What a broker makes of the frames of a snapshot."""
    assembly = Assembly()
    updates = [
        update
        for frame in frames
        for message in link.FrameReader(link.decode_from_agent).feed(frame)
        for update in assembly.take(message)  # type: ignore[arg-type]
        if update is not None
    ]
    (image,) = updates
    assert isinstance(image, ClusterImage)
    return image


def test_equal_partitions_are_one_value() -> None:
    (raw,) = packed(
        TopicPiece(name="t", id=ID, version=5, first_index=0, partitions=(STATE, STATE))
    )

    piece = link.decode_piece(msgspec.Raw(raw))

    assert isinstance(piece, TopicPiece)
    assert piece.partitions[0] is piece.partitions[1]
    assert piece.partitions[0].replicas is piece.partitions[0].isr


def test_messages_are_cut_out_of_any_stream() -> None:
    stream = b"".join(map(link.encode, FROM_AGENT))
    reader = link.FrameReader(link.decode_from_agent)

    seen = [
        message
        for position in range(len(stream))
        for message in reader.feed(stream[position : position + 1])
    ]

    assert seen == list(FROM_AGENT)


@pytest.mark.parametrize("size", [0, link.MAX_FRAME + 1, 2**32 - 1])
def test_a_frame_of_a_size_that_is_not_allowed_is_refused_at_its_length(size: int) -> None:
    reader = link.FrameReader(link.decode_from_agent)

    with pytest.raises(link.MalformedFrame, match=str(size)):
        list(reader.feed(link.LENGTH.pack(size)))


def test_a_message_that_fits_no_frame_says_both_sizes() -> None:
    huge = link.Refused(error=ErrorCode.NONE, message="x" * link.MAX_FRAME)

    with pytest.raises(link.FrameTooLarge, match=rf"Refused takes 10\d+ bytes.* {link.MAX_FRAME}"):
        link.encode(huge)


def test_more_proposals_than_one_call_may_have_are_refused() -> None:
    proposal = Proposal(id=ID, action=AllocateProducerIds(), actor="User:alice")
    frame = link.encode(link.Propose(request_no=1, proposals=(proposal,) * 501))

    with pytest.raises(link.MalformedFrame, match="501"):
        link.decode_from_broker(body(frame))


def test_a_field_that_a_newer_agent_appends_is_overlooked() -> None:
    values = msgspec.msgpack.decode(body(link.encode(link.Ping(db_age_ms=3))))

    newer = msgspec.msgpack.encode([*values, "new"])

    assert link.decode_from_agent(newer) == link.Ping(db_age_ms=3)


def test_a_broker_of_an_older_checkout_asks_for_producer_ids_as_before() -> None:
    proposal = Proposal(id=ID, action=AllocateProducerIds(highest_seen=7, skip=9), actor="User:a")
    tag, number, (values,) = msgspec.msgpack.decode(
        body(link.encode(link.Propose(request_no=1, proposals=(proposal,))))
    )

    values[1] = values[1][:1]
    older = msgspec.msgpack.encode([tag, number, [values]])

    message = link.decode_from_broker(older)
    assert isinstance(message, link.Propose)
    assert message.proposals[0].action == AllocateProducerIds()


def test_a_broker_of_an_older_checkout_proposes_without_saying_where_it_comes_from() -> None:
    proposal = Proposal(
        id=ID,
        action=DeleteTopic(name="t"),
        actor="User:a",
        client_id="c",
        address="192.0.2.1",
        session="5e",
        expects=(Expectation(subject=Subject.TOPIC, name="t", version=3),),
    )
    frame = link.encode(link.Propose(request_no=1, proposals=(proposal,)))
    tag, number, (values,) = msgspec.msgpack.decode(body(frame))

    now = link.decode_from_broker(body(frame))
    older = link.decode_from_broker(msgspec.msgpack.encode([tag, number, [values[:-4]]]))

    assert isinstance(now, link.Propose)
    assert isinstance(older, link.Propose)
    assert now.proposals == (proposal,)
    assert older.proposals == (replace(proposal, client_id="", address="", session="", expects=()),)


def test_a_broker_of_an_older_checkout_registers_without_a_producer_id() -> None:
    registration = Registration(incarnation=ID, host="h", port=9092, highest_producer_id=7)
    names = [field.name for field in fields(Registration)]
    tag, values, *rest = msgspec.msgpack.decode(
        body(link.encode(link.Register(registration=registration)))
    )

    older = [tag, values[: names.index("highest_producer_id")], *rest]

    message = link.decode_from_broker(msgspec.msgpack.encode(older))
    assert isinstance(message, link.Register)
    assert message.registration.highest_producer_id == -1


@dataclass
class Direction:
    decode: Callable[[bytes], object]
    bodies: list[bytes]


DIRECTIONS = {
    "from broker": Direction(
        link.decode_from_broker, [body(link.encode(message)) for message in FROM_BROKER]
    ),
    "from agent": Direction(
        link.decode_from_agent, [body(link.encode(message)) for message in FROM_AGENT]
    ),
    "pieces": Direction(lambda data: link.decode_piece(msgspec.Raw(data)), packed(*PIECES)),
}


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=list(DIRECTIONS))
def test_truncated_message_is_malformed(direction: Direction) -> None:
    for whole in direction.bodies:
        for size in range(len(whole)):
            with pytest.raises(link.MalformedFrame):
                direction.decode(whole[:size])


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=list(DIRECTIONS))
def test_bytes_that_were_changed_are_a_message_or_malformed(direction: Direction) -> None:
    random = Random(11)
    malformed = 0

    for _ in range(count(3_000, 6_000, long=100_000)):
        data = bytearray(random.choice(direction.bodies))
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.choice(
                (0xDD, 0xDF, 0xC6, 0xFF, random.randrange(256))
            )
        try:
            direction.decode(bytes(data))
        except link.MalformedFrame:
            malformed += 1

    assert malformed


@pytest.mark.parametrize(
    "lie",
    [
        b"\xdd\xff\xff\xff\xff\x01",  # an array of four billion
        b"\xdf\xff\xff\xff\xff\x01",  # a map of as many
        b"\xc6\xff\xff\xff\xff\x01",  # bytes of as many
        b"\x92" * 10_000,  # arrays within arrays
        b"\x92\x17\xca\x7f\xc0\x00\x00",  # a number that is none
    ],
    ids=["array", "map", "bytes", "nested", "nan"],
)
def test_lengths_that_lie_cost_nothing(lie: bytes) -> None:
    for decode in (link.decode_from_agent, link.decode_from_broker):
        with pytest.raises(link.MalformedFrame):
            decode(lie)
