"""Topics that calls create by writing to them, where brokers and the rights of callers allow it."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.access.token_scopes import Scope, grants_of
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import failure
from gateway.kafka.pool import Pool
from gateway.rest.codes import ApiError, Code
from gateway.rest.topic_creation import MAX_CREATED_EACH, WINDOW_S, TopicCreation
from tests.fakes.broker_thread import broker_beside
from tests.fakes.rest_door import CLUSTER, WRITER
from tests.gateway.rest.produce.stage import Stage, door_of, on_loop, records_of

JSON = "application/vnd.kafka.json.v2+json"


def token(*scopes: Scope, names: str = "*") -> Caller:
    grants = [grant for scope in scopes for grant in grants_of(scope, names)]
    return Caller(kind=CallerKind.TOKEN, name="app", rights=Rights(grants), number=3)


MAKER = token(Scope.WRITE, Scope.CREATE)


class Brokers:
    """A pool whose clients create what they are asked for."""

    def __init__(self, *, is_enabled: bool = True) -> None:
        self.created: list[str] = []
        self.asked = 0
        self.value = str(is_enabled).lower()
        self.admin = self

    @contextmanager
    def borrowed(self, client_id: str = "") -> Iterator["Brokers"]:
        assert client_id in {"", "gateway token:app", "gateway token:writer"}
        yield self

    def brokers(self) -> list[int]:
        return [1]

    def configs(self, *_: object) -> list[Any]:
        self.asked += 1
        return [SimpleNamespace(key="auto.create.topics.enable", value=self.value)]

    def create(self, topics: list[Any]) -> None:
        self.created += [topic.name for topic in topics]

    def find(self, names: list[str]) -> dict[str, object]:
        return {name: name for name in names if name in self.created}


def creating(brokers: Brokers, clock: Callable[[], float] = lambda: 0.0) -> TopicCreation:
    async def look_up(topic: str) -> int:
        if topic not in brokers.created:
            raise failure("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic}")
        return 1

    return TopicCreation(
        cast("Pool", brokers),
        look_up=look_up,
        cluster_id=lambda: CLUSTER,
        client_id="gateway",
        monotonic=clock,
    )


async def refused(creation: TopicCreation, caller: Caller, topic: str) -> ApiError:
    with pytest.raises(ApiError) as found:
        await creation.create(caller, topic)
    return found.value


@pytest.mark.parametrize(
    ("caller", "topic", "is_enabled", "step"),
    [
        (token(Scope.WRITE), "orders", True, "`./samsa tokens create NAME --create orders`"),
        (token(Scope.CREATE, names="orders"), "pay", True, "--create pay`"),
        (MAKER, "orders", False, "auto.create.topics.enable=false"),
        (WRITER, "__orders", True, "internal: create it by `./samsa topics create __orders`"),
        (WRITER, "a/b", True, "1 to 249 letters"),
        (WRITER, "orders\0x", True, "1 to 249 letters"),
        (WRITER, "x" * 250, True, "1 to 249 letters"),
    ],
)
def test_a_topic_that_may_not_be_created_stays_missing_with_the_next_step(
    caller: Caller, topic: str, *, is_enabled: bool, step: str
) -> None:
    brokers = Brokers(is_enabled=is_enabled)

    error = asyncio.run(refused(creating(brokers), caller, topic))

    assert (error.code, brokers.created) == (Code.NO_TOPIC, [])
    assert step in error.message


def test_calls_that_name_a_topic_at_once_create_it_once() -> None:
    brokers = Brokers()

    async def story() -> None:
        creation = creating(brokers)
        await asyncio.gather(*(creation.create(MAKER, "orders") for _ in range(9)))
        await creation.create_all(MAKER, ["orders", "new", "__x"])
        await creation.create_all(token(Scope.READ), ["hidden"])

    asyncio.run(story())
    assert brokers.created == ["orders", "new"]


def test_a_caller_creates_a_bounded_number_of_topics_in_a_minute() -> None:
    brokers, now = Brokers(), 0.0

    async def story() -> ApiError:
        nonlocal now
        creation = creating(brokers, lambda: now)
        for number in range(MAX_CREATED_EACH):
            await creation.create(MAKER, f"t{number}")
        error = await refused(creation, MAKER, "one-more")
        await creation.create(WRITER, "of-another")
        now += WINDOW_S
        await creation.create(MAKER, "later")
        return error

    error = asyncio.run(story())
    assert (error.code, error.retry_after_s) == (Code.TOO_MANY, 60)
    assert "has created 60 topics" in error.message
    assert brokers.created[-2:] == ["of-another", "later"]
    assert brokers.asked == 2


# --- with a real broker ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("broker")
    with broker_beside(folder) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def stage(connection: Connection) -> Stage:
    return Stage(connection, creates_topics=True)


@pytest.mark.slow
@on_loop
async def test_the_first_record_creates_its_topic(
    stage: Stage,
) -> None:
    v3 = f"/clusters/{CLUSTER}/topics"
    one = {"value": {"type": "JSON", "data": 1}}

    answers = [
        await stage.door.post("/topics/v2", {"records": [{"value": 1}]}, content_type=JSON),
        await stage.door.post(
            "/topics/placed/partitions/0", {"records": [{"value": 1}]}, content_type=JSON
        ),
        await stage.door.post(f"{v3}/stream/records", one),
        await stage.door.post(f"{v3}/batch/records:batch", {"entries": [{"id": "a", **one}]}),
    ]

    assert [answer.status for answer in answers] == [200, 200, 200, 207]
    assert answers[0].json()["offsets"][0]["error_code"] is None
    for name in ("v2", "placed", "stream", "batch"):
        written = await asyncio.to_thread(records_of, stage.connection, name)
        assert [each.value for each in written] == [b"1"]


@pytest.mark.slow
@on_loop
async def test_a_call_without_a_record_creates_no_topic(stage: Stage) -> None:
    garbled = await stage.door.post("/topics/garbled", b"{", content_type=JSON)
    wrong = await stage.door.post(f"/clusters/{CLUSTER}/topics/wrong/records", {"vaule": 1})

    assert (garbled.status, wrong.status) == (400, 422)
    assert await asyncio.to_thread(Admin(stage.connection).find, ["garbled", "wrong"]) == {}


@pytest.mark.slow
@on_loop
async def test_a_writer_without_the_right_gets_404_and_the_next_step(stage: Stage) -> None:
    door = door_of(stage.streams, stage.desk)
    door.callers.caller = token(Scope.WRITE)

    v2 = await door.post("/topics/absent", {"records": [{"value": 1}]}, content_type=JSON)
    v3 = await door.post(f"/clusters/{CLUSTER}/topics/absent/records", {"value": None})

    for answer in (v2, v3):
        told = json.loads(answer.body)
        assert (answer.status, told["error_code"]) == (404, 40401)
        assert "./samsa topics create absent" in told["message"]
    assert await asyncio.to_thread(Admin(stage.connection).find, ["absent"]) == {}


@pytest.mark.slow
@on_loop
async def test_a_call_whose_topic_cannot_be_created_is_refused_as_a_whole(stage: Stage) -> None:
    stage.creation._created["token:writer"] = MAX_CREATED_EACH  # noqa: SLF001 - a minute's worth
    stage.creation._window_at = time.monotonic()  # noqa: SLF001 - as above
    one = {"value": {"type": "JSON", "data": 1}}

    v2 = await stage.door.post("/topics/many", {"records": [{"value": 1}] * 9}, content_type=JSON)
    batch = await stage.door.post(
        f"/clusters/{CLUSTER}/topics/many/records:batch", {"entries": [{"id": "a", **one}]}
    )

    assert (v2.status, batch.status) == (429, 429)
    assert int(v2.headers["retry-after"]) > 0
