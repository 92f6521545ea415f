"""Records of version 2 on their way to a real broker."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator

import pytest

from gateway.kafka.connection import Connection
from gateway.rest.incoming import Budget
from gateway.rest.limits import Limits, Rates
from gateway.rest.produce.desk import MAX_BODY_BYTES
from tests.fakes.broker_thread import broker_beside
from tests.fakes.rest_door import CLUSTER, VIEWER
from tests.gateway.rest.produce.stage import Stage, on_loop, records_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"one": 1, "four": 4}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def stage(connection: Connection) -> Stage:
    return Stage(connection)


BINARY = "application/vnd.kafka.binary.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
AVRO = "application/vnd.kafka.avro.v2+json"
V2 = "application/vnd.kafka.v2+json"
ONE = {"records": [{"value": ""}]}
WITH_KEY = {"records": [{"value": 1, "key": 1}], "value_schema_id": 1}
WITHOUT_KEY = {"records": [{"value": 1}], "value_schema_id": 1}


def base64(value: bytes) -> str:
    return b64encode(value).decode()


@pytest.mark.parametrize("content_type", [BINARY, V2, f"{BINARY}; charset=utf-8"])
@on_loop
async def test_bytes_arrive_as_they_were(stage: Stage, content_type: str) -> None:
    records = [{"key": base64(b"\x00k"), "value": base64(b"\xff")}, {"value": None}]

    answer = await stage.door.post("/topics/one", {"records": records}, content_type=content_type)

    told = answer.json()
    assert (answer.status, answer.headers["content-type"]) == (200, V2)
    first = told["offsets"][0]["offset"]
    assert told == {
        "offsets": [
            {"partition": 0, "offset": first + n, "error_code": None, "error": None}
            for n in range(2)
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    found = await asyncio.to_thread(records_of, stage.connection, "one")
    assert [(each.key, each.value) for each in found[-2:]] == [(b"\x00k", b"\xff"), (None, None)]


@on_loop
async def test_json_arrives_as_text(stage: Stage) -> None:
    await stage.door.post(
        "/topics/four/partitions/3",
        b'{"records":[{"key": [1], "value": {"n": 123456789012345678901234567890}}]}',
        content_type=JSON,
    )

    [*_, found] = await asyncio.to_thread(records_of, stage.connection, "four", 3)
    assert (found.key, found.value) == (b"[1]", b'{"n":123456789012345678901234567890}')


@on_loop
async def test_a_record_that_fails_is_told_beside_those_that_do_not(stage: Stage) -> None:
    records = [{"value": 1, "partition": 1}, {"value": 2, "partition": 9}]

    answer = await stage.door.post("/topics/four", {"records": records}, content_type=JSON)

    good, bad = answer.json()["offsets"]
    assert answer.status == 200
    assert (good["partition"], good["error_code"]) == (1, None)
    assert (bad["partition"], bad["offset"], bad["error_code"]) == (9, None, 40402)


@pytest.mark.parametrize(
    ("path", "content_type", "body", "status", "code"),
    [
        ("/topics/none", BINARY, ONE, 404, 40401),
        ("/topics/four/partitions/4", BINARY, ONE, 404, 40402),
        ("/topics/four/partitions/x", BINARY, ONE, 404, 40402),
        ("/topics/four", BINARY, {"records": [{"value": "no base64"}]}, 422, 42206),
        ("/topics/four", BINARY, {"records": []}, 422, 422),
        ("/topics/four", BINARY, {"record": []}, 422, 422),
        ("/topics/four", BINARY, b"{", 400, 400),
        ("/topics/four", "text/xml", {}, 415, 415),
        ("/topics/four", AVRO, {"records": [{"value": 1}]}, 422, 42202),
        ("/topics/four", AVRO, WITH_KEY, 422, 42201),
        ("/topics/four", AVRO, WITHOUT_KEY, 408, 40801),
        ("/topics/four/partitions/1", JSON, {"records": [{"partition": 2}]}, 422, 422),
        ("/topics/four", JSON, {"records": [{"partition": "one"}]}, 422, 422),
        ("/topics/four", JSON, {"records": [{"partition": "2147483648"}]}, 422, 422),
        ("/topics/four", JSON, {"records": [{"value": 1}], "value_schema_id": "x"}, 422, 422),
    ],
)
@on_loop
async def test_what_cannot_be_written_is_refused_as_a_whole(
    stage: Stage, path: str, content_type: str, body: object, status: int, code: int
) -> None:
    answer = await stage.door.post(path, body, content_type=content_type)

    assert (answer.status, answer.json()["error_code"]) == (status, code)
    assert answer.headers["content-type"] == V2


@on_loop
async def test_numbers_may_be_written_as_texts(stage: Stage) -> None:
    body = {"records": [{"value": 1, "partition": "2"}], "value_schema_id": "3"}

    answer = await stage.door.post("/topics/four", body, content_type=JSON)

    assert answer.json()["offsets"][0]["partition"] == 2


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        (JSON, rb'{"records": [{"value": "a\ud800"}]}', "\\ud800 is half of a surrogate pair"),
        (JSON, rb'{"records": [{"value": "\ud83d\ude00 \udc00"}]}', "\\udc00 is half"),
        (
            V2,
            {"records": [{"value": {"n": 1}}]},
            "send Content-Type: application/vnd.kafka.json.v2",
        ),
        ("application/json", {"records": [{"value": "hello!"}]}, "keys and values are base64"),
    ],
)
@on_loop
async def test_a_refusal_names_what_to_send_instead(
    stage: Stage, content_type: str, body: object, words: str
) -> None:
    answer = await stage.door.post("/topics/four", body, content_type=content_type)

    assert words in answer.json()["message"]


@on_loop
async def test_bodies_have_a_limit_each_and_together(stage: Stage) -> None:
    large = await stage.door.post("/topics/one", b" " * (MAX_BODY_BYTES + 1), content_type=V2)
    stage.desk.budget = Budget(10)
    many = await stage.door.post("/topics/one", ONE, content_type=V2)

    assert (large.status, many.status) == (413, 503)
    stage.desk.budget.change(stage.door.callers.caller, 10)


def test_calls_above_the_rate_of_their_caller_wait_and_are_written_whole(
    connection: Connection,
) -> None:
    records = [{"value": n} for n in range(100)]

    @on_loop
    async def story(stage: Stage) -> None:
        before = len(await asyncio.to_thread(records_of, stage.connection, "one"))
        answers = await asyncio.gather(
            *(
                stage.door.post("/topics/one", {"records": records}, content_type=JSON)
                for _ in range(8)
            )
        )
        after = len(await asyncio.to_thread(records_of, stage.connection, "one"))

        assert [each.status for each in answers] == [200] * 8
        assert {one["error_code"] for each in answers for one in each.json()["offsets"]} == {None}
        assert after - before == 800

    story(stage=Stage(connection, limits=Limits(Rates(records=400))))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/topics/one", {"records": [{"value": 1}] * 3}),
        (
            f"/clusters/{CLUSTER}/topics/one/records:batch",
            {"entries": [{"id": "a", "value": {"type": "JSON", "data": 1}}]},
        ),
    ],
)
def test_a_call_that_would_wait_too_long_is_refused_whole(
    connection: Connection, path: str, body: object
) -> None:
    limits = Limits(Rates(records=10))

    @on_loop
    async def story(stage: Stage) -> None:
        limits.take_records(stage.door.callers.caller, 200, 10)
        content_type = JSON if path.startswith("/topics") else "application/json"
        answer = await stage.door.post(path, body, content_type=content_type)

        assert (answer.status, answer.json()["error_code"]) == (429, 429)
        assert int(answer.headers["retry-after"]) in {19, 20}
        assert stage.door.traffic.calls[0].records == 0, "nothing was sent"

    story(stage=Stage(connection, limits=limits))


@on_loop
async def test_nobody_writes_without_the_right(stage: Stage) -> None:
    stage.door.callers.caller = VIEWER

    answer = await stage.door.post("/topics/one", ONE, content_type=V2)

    assert (answer.status, answer.json()["error_code"]) == (403, 40301)
