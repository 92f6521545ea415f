"""Records of version 3 on their way to a real broker, and their receipts."""

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.access.callers import Caller
from gateway.kafka.connection import Connection
from gateway.rest.codes import ApiError, Code
from gateway.rest.incoming import Budget
from gateway.rest.limits import Limits, Rates
from gateway.rest.produce.stream import MAX_WAITING_BYTES, Streams
from tests.fakes.broker_thread import broker_beside
from tests.fakes.rest_door import CLUSTER, VIEWER, WAIT_S, Duplex
from tests.gateway.rest.produce.stage import Stage, door_of, on_loop, records_of

pytestmark = pytest.mark.slow
RECORDS = f"/clusters/{CLUSTER}/topics/four/records"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"), topics={"four": 4, "one": 1, "kept": 1, "slow": 1}
    ) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def stage(connection: Connection) -> Stage:
    return Stage(connection)


def record(value: object, **more: object) -> dict[str, Any]:
    return {"value": {"type": "JSON", "data": value}, **more}


def text(*records: object) -> bytes:
    return b"".join(json.dumps(each).encode() for each in records)


@on_loop
async def test_a_record_arrives_as_it_was_meant(stage: Stage) -> None:
    answer = await stage.door.post(
        f"/clusters/{CLUSTER}/topics/kept/records",
        {
            "partition_id": 0,
            "headers": [
                {"name": "a", "value": b64encode(b"\x00\xff").decode()},
                {"name": "b", "value": None},
            ],
            "key": {"type": "BINARY", "data": b64encode(b"\x00key").decode()},
            "value": {"type": "STRING", "data": "schön"},
            "timestamp": "2026-01-31T13:00:00.123456+01:00",
        },
    )

    assert answer.status == 200
    assert answer.json() == {
        "error_code": 200,
        "cluster_id": CLUSTER,
        "topic_name": "kept",
        "partition_id": 0,
        "offset": 0,
        "timestamp": "2026-01-31T12:00:00.123Z",
        "key": {"type": "BINARY", "size": 4},
        "value": {"type": "STRING", "size": 6},
    }
    [found] = await asyncio.to_thread(records_of, stage.connection, "kept")
    assert (found.key, found.value) == (b"\x00key", "schön".encode())
    assert found.headers == (("a", b"\x00\xff"), ("b", None))
    assert found.timestamp_ms == 1_769_860_800_123


@on_loop
async def test_receipts_come_in_order_while_the_client_still_sends(stage: Stage) -> None:
    async with Duplex(stage.door, RECORDS) as client:
        sent = text(*(record(n, partition_id=n % 4) for n in range(40)))
        client.send(sent[:-3])
        first = await client.receipts(39)
        client.send(sent[-3:])
        client.send(text(record(40, partition_id=0)), is_last=True)
        rest = await client.rest()

    told = first + rest
    assert client.status == 200
    assert client.is_ended
    assert [each["partition_id"] for each in told] == [n % 4 for n in range(41)]
    for partition in range(4):
        offsets = [each["offset"] for each in told if each["partition_id"] == partition]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))


@on_loop
async def test_a_body_whose_first_record_takes_all_the_room_is_answered(stage: Stage) -> None:
    body = text(record("x" * MAX_WAITING_BYTES, partition_id=0), record(1, partition_id=0))

    async with asyncio.timeout(WAIT_S):
        answer = await stage.door.post(RECORDS, body)

    assert answer.status == 200
    assert [json.loads(line)["error_code"] for line in answer.body.splitlines()] == [413, 200]


@on_loop
async def test_a_wrong_record_gets_its_own_receipt_and_the_stream_goes_on(stage: Stage) -> None:
    wrong = [
        {"value": {"type": "AVRO", "data": 1}},
        {"value": {"data": 1}},
        {"value": {"type": "BINARY", "data": "a b="}},
        {"value": {"type": "STRING", "data": 7}},
        {"vaule": {"type": "JSON", "data": 1}},
        record(1, timestamp="yesterday"),
        record(1, partition_id=-1),
        record(1, headers=[{"name": "h", "value": "not base64!"}]),
    ]

    async with Duplex(stage.door, RECORDS) as client:
        client.send(text(*wrong, record(1, partition_id=9), record(2)), is_last=True)
        told = await client.rest()

    assert [each["error_code"] for each in told] == [422] * len(wrong) + [40402, 200]
    assert told[0]["message"].startswith("Error: 42205 : value.type is AVRO")
    assert told[1]["message"].startswith("Error: 42205 : ")
    assert all(each["message"].startswith("Error: 42206 : ") for each in told[2:-2])


@pytest.mark.parametrize(
    "broken",
    [b'{"value":{"type":"JSON","data":NaN}}', b'{"value":', b"[1]", b'{"a":"\xff"}', b"{'a'}"],
)
@on_loop
async def test_what_cannot_be_read_ends_the_stream_with_a_receipt(
    stage: Stage, broken: bytes
) -> None:
    async with Duplex(stage.door, RECORDS) as client:
        client.send(text(record(1), record(2)) + broken, is_last=True)
        told = await client.rest()

    assert [each["error_code"] for each in told] == [200, 200, 400]
    assert client.is_ended


@on_loop
async def test_one_record_of_known_length_is_answered_by_its_own_status(stage: Stage) -> None:
    answers = [
        await stage.door.post(RECORDS, {"value": {"type": "PROTOBUF", "data": 1}}),
        await stage.door.post(RECORDS, record(1, partition_id=77)),
        await stage.door.post(RECORDS, b"{"),
        await stage.door.post(RECORDS, b""),
        await stage.door.post(RECORDS, record(1), content_type="text/plain"),
        await stage.door.post(RECORDS.replace("four", "none"), record(1)),
        await stage.door.post(RECORDS.replace("four", "bad name"), record(1)),
        await stage.door.post(RECORDS.replace(CLUSTER, "other"), record(1)),
    ]

    assert [(answer.status, answer.json()["error_code"]) for answer in answers] == [
        (422, 42205),
        (404, 40402),
        (400, 400),
        (400, 400),
        (415, 415),
        (404, 40401),
        (404, 40401),
        (404, 404),
    ]


@on_loop
async def test_many_records_of_known_length_are_answered_as_a_stream(stage: Stage) -> None:
    answer = await stage.door.post(RECORDS, text(*(record(n) for n in range(100))))

    lines = answer.body.split(b"\r\n")
    assert lines.pop() == b""
    assert [json.loads(line)["error_code"] for line in lines] == [200] * 100


@on_loop
async def test_numbers_stay_as_they_were_written(stage: Stage) -> None:
    number = b"123456789012345678901234567890.000000000000000000001"
    topic = "one"

    await stage.door.post(
        RECORDS.replace("four", topic), b'{"value":{"type":"JSON","data":{"n": ' + number + b"}}}"
    )

    found = await asyncio.to_thread(records_of, stage.connection, topic)
    assert found[-1].value == b'{"n":' + number + b"}"


@on_loop
async def test_nobody_writes_without_the_right(stage: Stage) -> None:
    stage.door.callers.caller = VIEWER

    answer = await stage.door.post(RECORDS, record(1))

    assert (answer.status, answer.json()["error_code"]) == (403, 40301)


@on_loop
async def test_a_stop_ends_a_stream_after_its_last_receipts(stage: Stage) -> None:
    async with Duplex(stage.door, RECORDS) as client:
        client.send(text(record(1), record(2)))
        first = await client.receipts(2)
        stage.streams.drain()
        assert await client.rest() == []

    assert [each["error_code"] for each in first] == [200, 200]
    assert client.is_ended


@on_loop
async def test_a_client_that_sends_more_than_it_reads_learns_what_was_written(
    stage: Stage,
) -> None:
    streams = Streams(unread_s=0.5, max_unread_bytes=20_000)
    async with Duplex(door_of(streams, stage.desk), RECORDS) as client:
        client.reads.clear()
        for _ in range(30):
            client.send(text(*(record("x" * 20_000, partition_id=0) for _ in range(20))))
        await client.taken()
        client.reads.set()
        *told, last = await client.rest()

    offsets = [each["offset"] for each in told]
    assert 20_000 // 200 < len(offsets) < 600
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    assert (last["error_code"], last["records_written"]) == (413, len(offsets))
    assert f"of the first {len(offsets)} records, {len(offsets)} are written" in last["message"]
    assert client.is_ended


@on_loop
async def test_a_client_that_sends_all_before_it_reads_gets_all_receipts(stage: Stage) -> None:
    async with Duplex(door_of(Streams(unread_s=0.5), stage.desk), RECORDS) as client:
        client.reads.clear()
        for _ in range(60):
            client.send(text(*(record(1, partition_id=0) for _ in range(100))))
        # One of its records is no record: the others have been taken.
        client.send(text({"vaule": 1}), is_last=True)
        await client.taken()
        client.reads.set()
        told = await client.rest()

    assert [each["error_code"] for each in told] == [200] * 6_000 + [422]
    assert client.is_ended


@on_loop
async def test_what_follows_a_record_that_cannot_be_read_is_discarded(stage: Stage) -> None:
    async with Duplex(door_of(Streams(), stage.desk), RECORDS) as client:
        client.reads.clear()
        client.send(text(record(1)) + b"}")
        for _ in range(50):
            client.send(text(record(2)))
        await client.taken()
        client.reads.set()
        told = await client.rest()

    assert [each["error_code"] for each in told] == [200, 400]
    assert client.is_ended


@on_loop
async def test_a_client_that_reads_late_gets_all_receipts(stage: Stage) -> None:
    async with Duplex(door_of(Streams(), stage.desk), RECORDS) as client:
        client.reads.clear()
        for _ in range(30):
            client.send(text(*(record("x" * 20_000, partition_id=0) for _ in range(20))))
        client.reads.set()
        told = await client.receipts(600)

    offsets = [each["offset"] for each in told]
    assert offsets == list(range(offsets[0], offsets[0] + 600))


@on_loop
async def test_a_stream_has_a_longest_time(stage: Stage) -> None:
    async with Duplex(door_of(Streams(open_s=0.2), stage.desk), RECORDS) as client:
        client.send(text(record(1)))
        told = await client.rest()

    assert [each["error_code"] for each in told] == [200, 408]
    assert client.is_ended


@on_loop
async def test_too_many_streams_are_refused(stage: Stage) -> None:
    answer = await door_of(Streams(most=0), stage.desk).post(RECORDS, record(1))

    assert (answer.status, answer.json()["error_code"]) == (503, 503)
    assert answer.headers["retry-after"] == "5"


@on_loop
async def test_one_caller_does_not_take_all_streams(stage: Stage) -> None:
    door = door_of(Streams(each=1), stage.desk)
    async with Duplex(door, RECORDS) as client:
        client.send(text(record(1)))
        await client.receipts(1)
        second = await door.post(RECORDS, record(1))
        door.callers.caller = replace(door.callers.caller, name="another")
        third = await door.post(RECORDS, record(1))
        client.send(b"", is_last=True)
        await client.rest()
    door.callers.caller = replace(door.callers.caller, name="writer")
    fourth = await door.post(RECORDS, record(1))

    assert [answer.status for answer in (second, third, fourth)] == [429, 200, 200]


@on_loop
async def test_records_that_are_half_there_have_a_limit_of_all_callers(stage: Stage) -> None:
    stage.desk.budget = Budget(1_000)
    async with Duplex(stage.door, RECORDS) as first, Duplex(stage.door, RECORDS) as second:
        first.send(text(record(1)) + b'{"value":' + b" " * 900)
        await first.receipts(1)
        second.send(b'{"value":' + b" " * 900)
        [told] = await second.rest()
        first.leave()
        await first.rest()

    assert told["error_code"] == 503
    stage.desk.budget.change(stage.door.callers.caller, 1_000)


@on_loop
async def test_what_one_caller_has_half_sent_keeps_no_other_one_out(stage: Stage) -> None:
    stage.desk.budget = Budget(10_000, each=1_000)
    door = stage.door
    async with Duplex(door, RECORDS) as first, Duplex(door, RECORDS) as second:
        first.send(text(record(1)) + b'{"value":' + b" " * 900)
        await first.receipts(1)
        second.send(b'{"value":' + b" " * 900)
        [told] = await second.rest()
        door.callers.caller = replace(door.callers.caller, name="another")
        async with Duplex(door, RECORDS) as third:
            third.send(text(record(2)) + b'{"value":' + b" " * 900)
            [taken] = await third.receipts(1)

    assert told["error_code"] == 429
    assert "token:writer already; at most 1000 fit" in told["message"]
    assert taken["error_code"] == 200


@on_loop
async def test_a_client_that_leaves_ends_its_stream(stage: Stage) -> None:
    async with Duplex(door_of(Streams(), stage.desk), RECORDS) as client:
        client.send(text(record(1)) + b'{"value"')
        await client.receipts(1)
        client.leave()
        assert await client.rest() == []

    assert not client.is_ended


@on_loop
async def test_a_stream_whose_caller_is_known_no_more_ends_after_its_receipts(
    stage: Stage,
) -> None:
    is_revoked = asyncio.Event()

    async def watch(caller: Caller, holds: Callable[[Caller], bool]) -> ApiError:
        assert holds(caller)
        assert not holds(VIEWER)
        await is_revoked.wait()
        return ApiError(Code.NOT_AUTHENTICATED, "the token is revoked")

    stage.desk.watch = watch
    async with Duplex(stage.door, RECORDS) as client:
        client.send(text(record(1), record(2)))
        first = await client.receipts(2)
        is_revoked.set()
        rest = await client.rest()

    assert [each["error_code"] for each in first + rest] == [200, 200, 40101]
    assert client.is_ended


def test_a_stream_above_the_rate_of_its_caller_is_delayed_and_loses_no_record(
    connection: Connection,
) -> None:
    limits = Limits(Rates(records=200, bytes=0))

    @on_loop
    async def story(stage: Stage) -> None:
        async with Duplex(stage.door, RECORDS) as client:
            client.send(text(*(record(n) for n in range(300))), is_last=True)
            told = await client.rest()

        assert [each["error_code"] for each in told] == [200] * 300

    started = time.monotonic()
    story(stage=Stage(connection, limits=limits))
    assert time.monotonic() - started > 0.4, "a second's worth at once, the rest at the rate"


def test_a_stream_of_a_caller_that_owes_too_much_is_refused_before_its_first_record(
    connection: Connection,
) -> None:
    limits = Limits(Rates(records=10))

    @on_loop
    async def story(stage: Stage) -> None:
        limits.take_records(stage.door.callers.caller, 200, 10)
        async with Duplex(stage.door, RECORDS) as client:
            client.send(text(record(1), record(2)))
            told = await client.rest()

        assert (client.status, [each["error_code"] for each in told]) == (429, [429])
        assert stage.door.traffic.calls[0].records == 0

    story(stage=Stage(connection, limits=limits))
