"""A lane answers as the regular way does, byte for byte, or leaves the request to it."""

import asyncio
import struct
from collections.abc import Callable, Coroutine, Sized
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.headers import read_request, response_head
from brokers.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from brokers.protocol.schema import Message
from brokers.server.call import Closing
from brokers.server.express import fetch as express_fetch
from brokers.server.express import produce as express_produce
from brokers.server.express import templates
from brokers.server.express.fetch import FetchLane
from brokers.server.express.lanes import Answer, Express
from brokers.server.express.late import LateAnswer
from brokers.server.express.produce import ProduceLane
from brokers.server.handlers import fetch, produce
from brokers.server.listener import RECEIVE_BYTES
from tests.brokers.replication.parts import (
    REPLICATED,
    GatedFiles,
    Line,
    Rig,
    image,
    rig,
    sent,
    topic,
    topic_id,
    until,
)
from tests.builders.logs import NOW_MS, batch

PRODUCE_VERSIONS = range(ProduceLane.VERSIONS[0], ProduceLane.VERSIONS[1] + 1)
FETCH_VERSIONS = range(FetchLane.VERSIONS[0], FetchLane.VERSIONS[1] + 1)
NAMES = ("t", "a.longer_name-of-a-topic")


class Waiting:
    """A connection on which one answer is to come."""

    def __init__(self) -> None:
        self.watching: set[Closing] = set()
        self.delivered: list[tuple[int, bytes]] = []

    def watch(self, call: Closing) -> None:
        self.watching.add(call)

    def unwatch(self, call: Closing) -> None:
        self.watching.remove(call)

    def deliver_reserved(self, place: int, frame: list[Sized]) -> None:
        self.delivered.append((place, sent(frame)))


class Road:
    """An express over a rig, and the regular way beside it."""

    def __init__(self, broker: Rig) -> None:
        self.broker = broker
        broker.context.is_serving = True
        apis = {0: produce.SERVED.api(), 1: fetch.SERVED.api()}
        self.express = Express(broker.context, apis, (ProduceLane, FetchLane))
        self.data = bytearray(RECEIVE_BYTES)

    def ask(self, frame: bytes) -> bytes | None:
        """What a lane sends for a frame; None where it is left to the regular way."""
        self.data[: len(frame)] = frame
        answer = self.serve(frame)
        assert not isinstance(answer, LateAnswer), "it waits"
        return sent([answer] if isinstance(answer, bytes) else answer) if answer else None

    def serve(self, frame: bytes) -> Answer | None:
        self.data[: len(frame)] = frame
        return self.express.serve(self.data, memoryview(self.data), len(frame), 0.0)

    def wait(self, frame: bytes, place: int = 0) -> Waiting:
        """Asks, and waits for the answer on a connection of its own."""
        answer = self.serve(frame)
        assert isinstance(answer, LateAnswer), answer
        line = Waiting()
        answer.begin(line, place)
        return line

    def ask_regularly(self, frame: bytes) -> bytes:
        (size,) = struct.unpack_from(">i", frame)
        assert size == len(frame) - 4
        request = read_request(memoryview(bytearray(frame))[4:], APIS, 0)
        module: Any = produce if request.api.key == 0 else fetch
        message: Any = codec(request.api.request, request.version).decode(request.body)
        call = self.broker.call(message, request.version, Line())
        answer = module.handle(self.broker.context, call, message)
        assert answer is not None, "the regular way would wait"
        body = sent(codec(request.api.response, request.version).encode(answer))
        head = response_head(request.api, request.version, request.correlation_id, len(body))
        return head + body


def framed(
    message: Message, version: int, *, correlation: int = 7, client: bytes | None = b"it"
) -> bytes:
    assert message.KEY is not None
    api = APIS[message.KEY]
    length = -1 if client is None else len(client)
    head = struct.pack(">hhih", api.key, version, correlation, length) + (client or b"")
    if api.is_flexible(version):
        head += b"\0"
    body = b"".join(bytes(b) for b in codec(type(message), version).encode(message))
    return struct.pack(">i", len(head) + len(body)) + head + body


def write(
    records: bytes | memoryview, *, name: str = "t", index: int = 0, **more: Any
) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=memoryview(records))
    more.setdefault("acks", 1)
    return ProduceRequest(topic_data=[TopicProduceData(name=name, partition_data=[data])], **more)


def read(version: int, *, name: str = "t", offset: int = 0, **more: Any) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    wanted.current_leader_epoch = more.pop("leader_epoch", -1)
    wanted.last_fetched_epoch = more.pop("last_fetched_epoch", -1)
    asked = FetchTopic(partitions=[wanted])
    if version >= 13:
        asked.topic_id = topic_id(NAMES.index(name) + 1)
    else:
        asked.topic = name
    values = {"session_epoch": -1, "max_wait_ms": 500, "min_bytes": 1} | more
    return FetchRequest(topics=[asked], **values)


# The bytes that lanes look for in the answers of their own encoders, as a name.
MARKED = struct.pack(">qqq", 0x1122334455667711, 0x2233445566771122, 0x3344556677112233).decode()
WRITE_TWO = ProduceRequest(acks=1, topic_data=write(batch()).topic_data * 2)


def on_a_road(folder: Path, story: Callable[[Road], None], **configs: str) -> None:
    async def run() -> None:
        topics = [topic(name, id=number) for number, name in enumerate(NAMES, start=1)]
        settings = dict.fromkeys(NAMES, REPLICATED | configs)
        async with rig(folder, image(*topics, configs=settings)) as broker:
            story(Road(broker))

    asyncio.run(run())


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("size", [5, 50, 200, 20_000])
def test_a_batch_is_appended_and_answered_as_ever(tmp_path: Path, version: int, size: int) -> None:
    def story(road: Road) -> None:
        for name in NAMES:
            frame = framed(write(batch(size=size), name=name), version, correlation=99)
            assert road.ask(frame) is None, "nothing is known yet"
            expected = road.ask_regularly(frame)

            assert road.broker.leader(name).log.end_offset == 1
            answer = road.ask(frame)

            assert road.broker.leader(name).log.end_offset == 2
            assert answer is not None
            decoded = decoded_produce(answer, version)
            assert decoded.responses[0].partition_responses[0].base_offset == 1
            assert answer == expected.replace(bytes(8) + b"\xff" * 8, one() + b"\xff" * 8, 1)

    on_a_road(tmp_path, story)


def one() -> bytes:
    return (1).to_bytes(8, "big")


def decoded_produce(answer: bytes, version: int) -> Any:
    skipped = 9 if APIS[0].is_flexible(version) else 8
    return codec(ProduceResponse, version).decode(answer[skipped:])


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_batch_that_is_refused_is_answered_as_ever(tmp_path: Path, version: int) -> None:
    def story(road: Road) -> None:
        good, bad = bytes(batch()), bytearray(batch())
        bad[-1] ^= 1
        road.ask(framed(write(good), version))

        answer = road.ask(framed(write(bytes(bad)), version))

        assert answer == road.ask_regularly(framed(write(bytes(bad)), version))
        found = decoded_produce(answer, version).responses[0].partition_responses[0]
        assert found.error_code == ErrorCode.CORRUPT_MESSAGE
        assert road.broker.leader().log.end_offset == 0

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", [8, 11])
@pytest.mark.parametrize(
    "message",
    [
        write(batch(), acks=0),
        write(batch(), acks=1, transactional_id="mine"),
        write(batch(), index=9),
        write(batch(), name="nowhere"),
        ProduceRequest(acks=1, topic_data=write(batch()).topic_data * 2),
        ProduceRequest(acks=1, topic_data=[]),
        ProduceRequest(
            acks=1,
            topic_data=[
                TopicProduceData(
                    name="t", partition_data=[PartitionProduceData(index=0, records=None)]
                )
            ],
        ),
    ],
)
def test_what_is_not_one_plain_batch_goes_the_regular_way(
    tmp_path: Path, version: int, message: ProduceRequest
) -> None:
    def story(road: Road) -> None:
        for _ in range(3):
            assert road.ask(framed(message, version)) is None

        assert road.broker.leader().log.end_offset == 0

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", [8, 11])
@pytest.mark.parametrize(
    "message", [write(batch(), acks=0), WRITE_TWO, write(batch(), name=MARKED)]
)
def test_what_no_lane_will_ever_take_is_not_learned_and_harms_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, message: ProduceRequest
) -> None:
    decoded: list[int] = []

    def counted(*what: Any) -> Any:
        decoded.append(1)
        return read_request(*what)

    def story(road: Road) -> None:
        monkeypatch.setattr(express_produce, "read_request", counted)

        for _ in range(3):
            assert road.ask(framed(message, version)) is None

        # A name that nobody has shows itself only when it is looked for.
        assert len(decoded) == (3 if message.topic_data[0].name == MARKED else 0)

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_reader_with_a_session_is_not_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it was decoded")

    def story(road: Road) -> None:
        road.broker.leader().append(batch(), NOW_MS)
        monkeypatch.setattr(express_fetch, "read_request", never)

        for session, epoch in ((0, 0), (5, 3), (5, -1)):
            message = read(version, session_id=session, session_epoch=epoch)
            assert road.ask(framed(message, version)) is None
        with pytest.raises(AssertionError, match="decoded"):
            road.ask(framed(read(version), version))

    on_a_road(tmp_path, story)


def test_a_lane_counts_the_requests_that_it_refuses(tmp_path: Path) -> None:
    def story(road: Road) -> None:
        road.ask(framed(write(batch()), 9))
        seconds = road.broker.context.metrics.requests_of(APIS[0].name)
        bad = bytearray(batch())
        bad[-1] ^= 1

        assert road.ask(framed(write(bytes(bad)), 9)) is not None

        assert seconds.count == 1

    on_a_road(tmp_path, story)


def in_time(folder: Path, story: Callable[[Road, GatedFiles], Coroutine[Any, Any, None]]) -> None:
    """A story on a broker whose disk confirms nothing before its gate is set."""

    async def run() -> None:
        files = GatedFiles()
        async with rig(folder, image(topic()), files=files) as broker:
            road = Road(broker)
            files.gate.clear()
            try:
                await story(road, files)
            finally:
                files.gate.set()
            assert broker.replicas.room.append_bytes == 0
            assert len(broker.replicas.deadlines) == 0

    asyncio.run(run())


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_batch_is_answered_once_it_is_on_the_disk(tmp_path: Path, version: int) -> None:
    async def story(road: Road, files: GatedFiles) -> None:
        frame = framed(write(batch()), version)
        assert road.ask(frame) is None
        lines = [road.wait(frame, place) for place in (5, 6)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert [line.delivered for line in lines] == [[], []]

        files.gate.set()
        await until(lambda: all(line.delivered for line in lines))

        for offset, (line, place) in enumerate(zip(lines, (5, 6), strict=True)):
            ((given, answer),) = line.delivered
            found = decoded_produce(answer, version).responses[0].partition_responses[0]
            assert (given, found.error_code, found.base_offset) == (place, 0, offset)
            assert not line.watching

    in_time(tmp_path, story)


def test_a_batch_that_is_not_safe_in_time_is_answered_so_once(tmp_path: Path) -> None:
    async def story(road: Road, files: GatedFiles) -> None:
        frame = framed(write(batch(), timeout_ms=40_000), 9)
        road.ask(frame)
        line = road.wait(frame)
        await road.broker.pass_time(39_000)
        assert not line.delivered

        await road.broker.pass_time(3_000)

        ((_place, answer),) = line.delivered
        found = decoded_produce(answer, 9).responses[0].partition_responses[0]
        assert (found.error_code, found.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        files.gate.set()
        await until(lambda: road.broker.leader().high_watermark == 1)
        assert len(line.delivered) == 1

    in_time(tmp_path, story)


def test_a_batch_whose_partition_moves_away_is_answered_so(tmp_path: Path) -> None:
    async def story(road: Road, _files: GatedFiles) -> None:
        frame = framed(write(batch()), 9)
        road.ask(frame)
        line = road.wait(frame)

        road.broker.leader().resign()

        ((_place, answer),) = line.delivered
        found = decoded_produce(answer, 9).responses[0].partition_responses[0]
        assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_time(tmp_path, story)


def test_a_wait_ends_with_its_connection(tmp_path: Path) -> None:
    async def story(road: Road, files: GatedFiles) -> None:
        frame = framed(write(batch()), 9)
        road.ask(frame)
        line = road.wait(frame)

        for call in line.watching:
            call.channel_closed()

        assert road.broker.replicas.room.append_bytes == 0
        files.gate.set()
        await until(lambda: road.broker.leader().high_watermark == 1)
        assert not line.delivered
        assert road.broker.context.metrics.requests_of(APIS[0].name).count == 0

    in_time(tmp_path, story)


def test_no_more_batches_wait_than_there_is_room_for(tmp_path: Path) -> None:
    async def story(road: Road, _files: GatedFiles) -> None:
        frame = framed(write(batch()), 9)
        road.ask(frame)
        road.broker.replicas.room.max_appends = 1
        road.wait(frame)

        assert road.ask(frame) is None
        assert road.broker.leader().log.end_offset == 1

    async def run(road: Road, files: GatedFiles) -> None:
        await story(road, files)
        files.gate.set()
        await until(lambda: road.broker.leader().high_watermark == 1)

    in_time(tmp_path, run)


def test_a_broker_that_is_not_serving_takes_nothing(tmp_path: Path) -> None:
    def story(road: Road) -> None:
        road.ask(framed(write(batch()), 9))
        road.broker.context.is_serving = False

        assert road.ask(framed(write(batch()), 9)) is None

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("client", [None, b"", b"c" * 255, b"c" * 256, b"c" * 600])
@pytest.mark.parametrize("version", [8, 9])
def test_any_client_id_leads_to_the_right_answer(
    tmp_path: Path, version: int, client: bytes | None
) -> None:
    def story(road: Road) -> None:
        frame = framed(write(batch()), version, client=client)

        answers = [road.ask(frame) for _ in range(3)]

        taken = [answer for answer in answers if answer is not None]
        assert road.broker.leader().log.end_offset == len(taken)
        assert bool(taken) == (client is not None and len(client) < 256)

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", [8, 9])
def test_a_frame_that_was_changed_anywhere_never_does_what_it_does_not_say(
    tmp_path: Path, version: int
) -> None:
    def story(road: Road) -> None:
        frame = framed(write(batch()), version)
        road.ask(frame)
        head = frame.index(bytes(batch()))
        for position in range(head):
            for flip in (1, 0x80, 0xFF):
                changed = bytearray(frame)
                changed[position] ^= flip
                before = road.broker.leader().log.end_offset

                answer = road.ask(bytes(changed))

                is_harmless = 8 <= position < 12  # the correlation id
                assert (answer is not None) == is_harmless, position
                assert road.broker.leader().log.end_offset == before + is_harmless

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", [8, 9])
def test_a_frame_with_tags_or_bytes_too_many_goes_the_regular_way(
    tmp_path: Path, version: int
) -> None:
    def story(road: Road) -> None:
        frame = framed(write(batch()), version)
        road.ask(frame)
        longer = frame + b"\0"
        resized = struct.pack(">i", len(longer) - 4) + longer[4:]

        assert road.ask(resized) is None
        assert road.ask(frame[:-1]) is None
        assert road.ask(longer) is None

    on_a_road(tmp_path, story)


def test_no_more_is_remembered_than_there_is_room_for(tmp_path: Path) -> None:
    def story(road: Road) -> None:
        lane = ProduceLane(
            road.broker.context, APIS[0], 9, road.broker.context.metrics.requests_of("P")
        )
        for number in range(templates.MAX_TEMPLATES + 10):
            frame = framed(write(batch()), 9, client=b"client-%d" % number)
            road.data[: len(frame)] = frame
            lane.serve(road.data, memoryview(road.data), len(frame), 1, 0.0)

        assert 0 < len(lane.templates) <= templates.MAX_TEMPLATES

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("size", [5, 200, 20_000, 200_000])
def test_a_reader_gets_the_same_bytes_as_ever(
    tmp_path: Path, version: int, isolation: int, size: int
) -> None:
    def story(road: Road) -> None:
        for name in NAMES:
            log = road.broker.leader(name)
            for _ in range(3):
                log.append(batch(size=size), NOW_MS)
            message = read(version, name=name, isolation_level=isolation)
            assert road.ask(framed(message, version)) is None, "nothing is known yet"
            for offset in (0, 1, 2):
                asked = read(version, name=name, offset=offset, isolation_level=isolation)
                frame = framed(asked, version, correlation=offset)

                assert road.ask(frame) == road.ask_regularly(frame)

            assert log.log.segments.active.file.pins == 0

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", [10, 12, 13, 18])
def test_a_reader_that_has_to_wait_or_to_be_told_goes_the_regular_way(
    tmp_path: Path, version: int
) -> None:
    def story(road: Road) -> None:
        log = road.broker.leader()
        log.append(batch(), NOW_MS)
        plain = framed(read(version), version)
        road.ask(plain)
        assert road.ask(plain) is not None
        others = [
            read(version, offset=1),
            read(version, offset=2),
            read(version, offset=-1),
            read(version, min_bytes=1 << 20),
            read(version, session_epoch=0),
            read(version, session_id=5, session_epoch=-1),
            read(version, leader_epoch=5),
            FetchRequest(session_epoch=-1, topics=[]),
        ]
        if version >= 12:
            others.append(read(version, last_fetched_epoch=0))
        if version >= 15:
            others.append(read(version, replica_state=ReplicaState(replica_id=2)))
        else:
            others.append(read(version, replica_id=2))

        for message in others:
            for _ in range(2):
                assert road.ask(framed(message, version)) is None, message

        assert log.log.segments.active.file.pins == 0

    on_a_road(tmp_path, story)


@pytest.mark.parametrize("version", [10, 12, 13, 15])
def test_no_changed_fetch_is_answered_with_another_ones_records(
    tmp_path: Path, version: int
) -> None:
    def story(road: Road) -> None:
        road.broker.leader().append(batch(), NOW_MS)
        frame = framed(read(version), version)
        road.ask(frame)
        for position in range(len(frame)):
            changed = bytearray(frame)
            changed[position] ^= 0x81

            answer = road.ask(bytes(changed))

            if 8 <= position < 12:
                assert answer == road.ask_regularly(bytes(changed))
            else:
                assert answer is None, position

    on_a_road(tmp_path, story)


def test_a_fetch_answer_decodes(tmp_path: Path) -> None:
    def story(road: Road) -> None:
        road.broker.leader().append(batch(size=5), NOW_MS)
        frame = framed(read(12), 12)
        road.ask(frame)

        answer = road.ask(frame)

        assert answer is not None
        decoded: Any = codec(FetchResponse, 12).decode(answer[9:])
        data = decoded.responses[0].partitions[0]
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 1)
        assert bytes(data.records).endswith(b"00000\0")

    on_a_road(tmp_path, story)
