"""Consumers of version 2, asked at workers in turn."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.access.token_scopes import Scope, grants_of
from gateway.kafka import clients
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import actions
from gateway.rest.consume.instances import CLAIMS, MAX_PER_CALLER, claim_of
from tests.fakes.broker_thread import broker_beside
from tests.fakes.gateway_workers import Gateway, running_gateway
from tests.fakes.rest_door import WRITER
from tests.gateway.shared.test_store import connected, served
from tests.scale import count

pytestmark = pytest.mark.slow
JSON: Final = {"Accept": "application/vnd.kafka.json.v2+json"}
WAIT_S: Final = 60
ROUNDS: Final = count(2, 10, long=100)
# Longer than any step of a test here takes.
LONG_MS: Final = 30_000
PLACES: Final = [{"topic": "orders", "partition": number} for number in range(2)]
RECORDS: Final = 10
# What is sent, and the status and code that it is answered with.
WRONG_DRAFTS: Final[Sequence[tuple[object, tuple[int, int]]]] = [
    ({"format": "avro"}, (422, 42204)),
    ({"format": "protobuf"}, (422, 42204)),
    ({"format": 7}, (422, 42204)),
    ({"auto.offset.reset": "newest"}, (422, 42204)),
    ({"auto.commit.enable": "maybe"}, (422, 42204)),
    ({"name": 7}, (422, 42204)),
    ({"fetch.min.bytes": -2}, (422, 40001)),
    ({"fetch.min.bytes": "many"}, (422, 40001)),
    ({"consumer.request.timeout.ms": 10**9}, (422, 40001)),
    ({"name": "\x00"}, (422, 40001)),
    ({"name": "x" * 300}, (422, 40001)),
    ({"isolation.level": "read_committed"}, (422, 422)),
    (b"[]", (400, 400)),
    (b'{"name":NaN}', (400, 400)),
    (b'{"name":"\xff"}', (400, 400)),
    (b" " * 2_000_000, (413, 413)),
]
WRONG_CALLS: Final[Sequence[tuple[str, str, object, tuple[int, int]]]] = [
    ("POST", "subscription", {}, (422, 422)),
    ("POST", "subscription", {"topics": []}, (422, 422)),
    ("POST", "subscription", {"topics": ["^x"]}, (422, 422)),
    ("POST", "subscription", {"topics": ["x"], "topic_pattern": "x"}, (409, 40903)),
    ("POST", "subscription", {"topic_pattern": "x" * 2_000}, (422, 422)),
    ("POST", "subscription", {"topic_pattern": 7}, (422, 422)),
    ("POST", "subscription", {"topic_pattern": "or{1,255}{1,255}{1,255}"}, (422, 422)),
    ("POST", "assignments", {"partitions": [{"topic": "x"}]}, (422, 422)),
    ("POST", "assignments", {"partitions": [{"topic": "x", "partition": 2**40}]}, (422, 422)),
    ("POST", "offsets", {"offsets": [{**PLACES[0], "offset": 2**63}]}, (422, 422)),
    ("POST", "offsets", {"offsets": [{**PLACES[0], "offset": "1x"}]}, (422, 422)),
    ("POST", "offsets", {"offsets": [{**PLACES[0], "offset": "9" * 19}]}, (422, 422)),
    ("POST", "assignments", {"partitions": [{"topic": "x", "partition": "-1"}]}, (422, 422)),
    ("POST", "positions", {"timestamps": [{**PLACES[0], "timestamp": "x"}]}, (422, 42206)),
    ("POST", "positions", {"offsets": [{**PLACES[0], "offset": 0}]}, (409, 40903)),
    ("POST", "positions/end", {"partitions": PLACES}, (409, 40903)),
    ("GET", "records?timeout=x", None, (400, 400)),
    ("GET", "records", None, (409, 40903)),
]
# The interval of heartbeats.
SOON: Final = {
    "group.consumer.heartbeat.interval.ms": "300",
    # Its records are of 1970, and retention looks every five minutes.
    "log.retention.ms": "-1",
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("broker")
    with broker_beside(folder, topics={"orders": 2, "odd": 1}, defaults=SOON) as broker:
        connection = Connection(bootstrap=broker.bootstrap)
        orders, odd = TopicWriter(connection, "orders"), TopicWriter(connection, "odd")
        for number in range(RECORDS):
            orders.send(
                NewRecord(
                    value=b'{"n":%d}' % number,
                    partition=number % 2,
                    timestamp_ms=1_000 * (number + 1),
                )
            )
        orders.flush()
        odd.send(NewRecord(key=b"\xff", value=b"no json"))
        odd.flush()
        yield broker.bootstrap


Scenario = Callable[[Gateway], Awaitable[None]]
Ask = Callable[[Scenario], None]


@pytest.fixture
def in_turn(tmp_path: Path, bootstrap: str) -> Ask:
    """Return what runs a scenario at three workers that share nothing but their sockets."""

    def run(scenario: Scenario) -> None:
        async def whole() -> None:
            async with running_gateway(tmp_path, bootstrap) as gateway:
                await scenario(gateway)

        asyncio.run(whole())

    return run


async def created(gateway: Gateway, group: str, **draft: Any) -> str:
    """Make a consumer and return the path of it."""
    worker = draft.pop("worker", None)
    body = {"format": "json", "auto.offset.reset": "earliest", **draft}
    answer = await gateway.ask("POST", f"/consumers/{group}", body, worker=worker)
    assert answer.status == 200, answer.body
    base: str = answer.json()["base_uri"]
    assert base.startswith("http://gateway:8082/consumers/")
    return base.removeprefix("http://gateway:8082")


async def subscribed(gateway: Gateway, group: str, **draft: Any) -> str:
    path = await created(gateway, group, **draft)
    answer = await gateway.ask("POST", f"{path}/subscription", {"topics": ["orders"]})
    assert answer.status == 204, answer.body
    return path


async def assigned(gateway: Gateway, group: str, **draft: Any) -> str:
    path = await created(gateway, group, **draft)
    answer = await gateway.ask("POST", f"{path}/assignments", {"partitions": PLACES[:1]})
    assert answer.status == 204, answer.body
    return path


async def fetched(gateway: Gateway, path: str, *, query: str = "") -> Sequence[dict[str, Any]]:
    answer = await gateway.ask("GET", f"{path}/records{query}", headers=JSON)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == JSON["Accept"]
    found: list[dict[str, Any]] = answer.json()
    return found


async def all_of(gateway: Gateway, path: str, wanted: int = RECORDS) -> Sequence[dict[str, Any]]:
    found = [*await fetched(gateway, path)]
    assert found, "the first fetch is not empty"
    async with asyncio.timeout(60):
        while len(found) < wanted:
            found += await fetched(gateway, path)
    return found


async def refused(
    gateway: Gateway, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, int]:
    """Ask each worker; return the status and the code, which have to be the same for all."""
    told = set()
    for worker in gateway.workers:
        answer = await gateway.ask(method, path, body, headers=headers, worker=worker)
        assert answer.headers["content-type"] == "application/vnd.kafka.v2+json"
        assert answer.json()["message"]
        told.add((answer.status, answer.json()["error_code"]))
    [only] = told
    return only


def reader(*, topics: str, groups: str) -> Caller:
    grants = (*grants_of(Scope.READ, topics), *grants_of(Scope.GROUP, groups))
    return Caller(kind=CallerKind.TOKEN, name="reader", rights=Rights(grants), number=3)


def let_in(gateway: Gateway, caller: Caller) -> None:
    for worker in gateway.workers:
        worker.callers.caller = caller


@pytest.mark.parametrize("name", ["", "mine/%2F €"])
def test_a_consumer_is_used_on_whichever_worker_is_asked(in_turn: Ask, name: str) -> None:
    async def scenario(gateway: Gateway) -> None:
        for number in range(ROUNDS):
            chosen = {"name": name} if name else {}
            path = await subscribed(gateway, f"round-{bool(name)}-{number}", **chosen)
            found = await all_of(gateway, path)
            commit = await gateway.ask("POST", f"{path}/offsets")
            committed = await gateway.ask("GET", f"{path}/offsets", {"partitions": PLACES})
            deleted = await gateway.ask("DELETE", path)

            assert sorted(each["value"]["n"] for each in found) == list(range(RECORDS))
            assert commit.status == 200
            assert sorted(each["offset"] for each in committed.json()["offsets"]) == [5, 5]
            assert deleted.status == 204
            assert await refused(gateway, "GET", f"{path}/records") == (404, 40403)

    in_turn(scenario)


def test_two_of_a_group_divide_the_partitions(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        one = await subscribed(gateway, "two")
        await fetched(gateway, one)
        other = await subscribed(gateway, "two")
        shares: list[int] = []
        async with asyncio.timeout(60):
            while shares != [1, 1]:
                shares = []
                for path in (one, other):
                    await fetched(gateway, path, query="?timeout=50")
                    answer = await gateway.ask("GET", f"{path}/assignments")
                    shares.append(len(answer.json()["partitions"]))

    in_turn(scenario)


@pytest.mark.parametrize("at", [0, 1], ids=["the owner", "another worker"])
def test_what_a_client_did_not_take_comes_again(in_turn: Ask, at: int) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await assigned(gateway, f"gone-{at}", worker=gateway.workers[0])
        await gateway.ask("GET", f"{path}/records", worker=gateway.workers[at], leaves=True)
        found = await all_of(gateway, path, 5)
        await gateway.ask("DELETE", path)
        other = await assigned(gateway, f"gone-{at}")
        committed = await gateway.ask("GET", f"{other}/offsets", {"partitions": PLACES[:1]})

        assert [each["offset"] for each in found] == [0, 1, 2, 3, 4]
        assert [each["offset"] for each in committed.json()["offsets"]] == [5]

    in_turn(scenario)


def test_what_nobody_took_is_not_committed(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await assigned(gateway, "untaken")
        for worker in gateway.workers:
            await gateway.ask("GET", f"{path}/records", worker=worker, leaves=True)
        await gateway.ask("DELETE", path)
        other = await assigned(gateway, "untaken")

        assert len(await all_of(gateway, other, 5)) == 5

    in_turn(scenario)


def test_without_commits_of_its_own_a_consumer_commits_what_it_is_told(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await assigned(gateway, "named", **{"auto.commit.enable": "false"})
        await all_of(gateway, path, 5)
        done = [{**PLACES[0], "offset": 2}]
        answer = await gateway.ask("POST", f"{path}/offsets?async=false", {"offsets": done})
        await gateway.ask("DELETE", path)
        other = await assigned(gateway, "named")

        assert answer.status == 200
        # The third record was processed, so the fourth is the next one.
        committed = await gateway.ask("GET", f"{other}/offsets")
        assert [each["offset"] for each in committed.json()["offsets"]] == [3]

    in_turn(scenario)


def test_a_record_that_is_no_json_comes_as_base64_with_the_reason(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "odd")
        await gateway.ask("POST", f"{path}/subscription", {"topics": ["odd"]})
        [record] = await all_of(gateway, path, 1)

        assert record["key"] == b64encode(b"\xff").decode()
        assert record["value"] == b64encode(b"no json").decode()
        assert "key is not JSON" in record["error"]

    in_turn(scenario)


def test_a_consumer_goes_on_where_it_is_told(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await assigned(gateway, "positions")
        place = PLACES[0]
        seeks: list[tuple[str, object, list[int]]] = [
            ("", {"offsets": [{**place, "offset": 3}]}, [3, 4]),
            ("/beginning", {"partitions": [place]}, [0, 1, 2, 3, 4]),
            ("", {"timestamps": [{**place, "timestamp": "1970-01-01T00:00:08Z"}]}, [4]),
            ("/end", {"partitions": [place]}, []),
        ]
        for under, body, offsets in seeks:
            answer = await gateway.ask("POST", f"{path}/positions{under}", body)
            found = await fetched(gateway, path, query="" if offsets else "?timeout=100")

            assert answer.status == 204, answer.body
            assert [each["offset"] for each in found] == offsets

    in_turn(scenario)


def test_what_is_read_is_told_and_can_be_taken_back(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "told")
        await gateway.ask("POST", f"{path}/subscription", {"topic_pattern": "ord.*"})
        await fetched(gateway, path)
        matched = await gateway.ask("GET", f"{path}/subscription")
        taken_back = await gateway.ask("DELETE", f"{path}/subscription")
        nothing = await gateway.ask("GET", f"{path}/subscription")
        again = await gateway.ask("POST", f"{path}/assignments", {"partitions": PLACES})
        places = await gateway.ask("GET", f"{path}/assignments")

        assert matched.json() == {"topics": ["orders"]}
        assert (taken_back.status, again.status) == (204, 204)
        assert nothing.json() == {"topics": []}
        assert places.json() == {"partitions": PLACES}

    in_turn(scenario)


def test_the_client_library_gets_names_and_no_pattern_of_a_caller(
    in_turn: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    class Recorded(Consumer):
        def subscribe(self, topics: list[str], *hooks: Any, **named: Any) -> None:
            given.extend(topics)
            super().subscribe(topics, *hooks, **named)

    monkeypatch.setattr(clients, "Consumer", Recorded)

    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "names-only")
        for pattern in ("^ord.*", "ord.*", "orders|odd"):
            answer = await gateway.ask("POST", f"{path}/subscription", {"topic_pattern": pattern})
            assert answer.status == 204, answer.body

    in_turn(scenario)
    assert set(given) == {"orders", "odd"}


def test_a_pattern_that_means_no_topic_yet_reads_those_that_appear(
    in_turn: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "LOOK_FOR_TOPICS_S", 0.0)

    async def scenario(gateway: Gateway) -> None:
        let_in(gateway, reader(topics="odd", groups="later"))
        path = await created(gateway, "later")
        answer = await gateway.ask("POST", f"{path}/subscription", {"topic_pattern": "ord.*"})
        nothing = await fetched(gateway, path, query="?timeout=10")
        let_in(gateway, reader(topics="ord*", groups="later"))
        found = await all_of(gateway, path)

        assert answer.status == 204
        assert nothing == []
        assert len(found) == RECORDS

    in_turn(scenario)


def test_a_consumer_is_used_by_its_creator_only(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await subscribed(gateway, "bound")
        let_in(gateway, reader(topics="*", groups="*"))
        for method, under, body in (
            ("GET", "/subscription", None),
            ("GET", "/assignments", None),
            ("GET", "/records", None),
            ("POST", "/offsets", None),
            ("POST", "/positions/beginning", {"partitions": PLACES}),
            ("DELETE", "", None),
        ):
            assert await refused(gateway, method, f"{path}{under}", body) == (403, 40301), under
        let_in(gateway, WRITER)
        deleted = await gateway.ask("DELETE", path)

        assert deleted.status == 204

    in_turn(scenario)


def test_a_name_is_one_consumers_of_all_workers(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "named-once", name="mine")
        body = {"name": "mine"}

        assert await refused(gateway, "POST", "/consumers/named-once", body) == (409, 40902)

        await gateway.ask("DELETE", path)
        assert await created(gateway, "named-once", name="mine") == path

    in_turn(scenario)


def test_a_generated_name_is_free_again_once_its_consumer_is_deleted(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "made")
        name = path.rpartition("/")[2]
        for _ in range(3):
            assert await refused(gateway, "POST", "/consumers/made", {"name": name}) == (409, 40902)
        await gateway.ask("DELETE", path)

        # Its worker may be another one than that in the name.
        for _ in range(2):
            assert await created(gateway, "made", name=name) == path
            for _ in range(3):
                answer = await gateway.ask("GET", f"{path}/assignments")
                assert answer.json() == {"partitions": []}
            await gateway.ask("DELETE", path)

    in_turn(scenario)


def test_the_claim_of_a_worker_that_has_ended_is_not_kept(tmp_path: Path, bootstrap: str) -> None:
    async def whole(url: str) -> None:
        async with running_gateway(tmp_path, bootstrap, shared_url=url) as gateway:
            shared = gateway.workers[0].worker.shared
            claim = claim_of("dead", "mine")
            async with asyncio.timeout(20):
                # A server that has just started does not answer yet.
                while not await shared.claim(CLAIMS, claim, owner="gateway-9", ttl_s=60):  # noqa: ASYNC110
                    await asyncio.sleep(0)
            path = await subscribed(gateway, "dead", name="mine")

            assert len(await all_of(gateway, path)) == RECORDS
            assert await refused(gateway, "POST", "/consumers/dead", {"name": "mine"}) == (
                409,
                40902,
            )

    with served(tmp_path):
        asyncio.run(whole(f"unix://{tmp_path / 's'}"))


def test_a_token_has_so_many_consumers_whichever_workers_have_them(
    tmp_path: Path, bootstrap: str
) -> None:
    async def whole(url: str) -> None:
        async with running_gateway(tmp_path, bootstrap, shared_url=url) as gateway:
            await connected(gateway.workers[0].worker.shared)
            asked = [gateway.ask("POST", "/consumers/many", {}) for _ in range(MAX_PER_CALLER + 3)]
            answers = await asyncio.gather(*asked)
            full = [answer for answer in answers if answer.status != 200]
            # A seat that is asked for counts for the other workers until it is refused.
            made = len(answers) - len(full)
            async with asyncio.timeout(WAIT_S):
                while made < MAX_PER_CALLER:
                    made += (await gateway.ask("POST", "/consumers/many", {})).status == 200

            assert made == MAX_PER_CALLER
            full += [await gateway.ask("POST", "/consumers/many", {}) for _ in range(3)]
            told = {(answer.status, answer.headers["retry-after"]) for answer in full}
            assert told == {(429, "1")}

    with served(tmp_path):
        asyncio.run(whole(f"unix://{tmp_path / 's'}"))


def test_a_call_that_is_passed_on_is_counted_once(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await assigned(gateway, "counted")
        asked = 2
        found: list[dict[str, Any]] = []
        while len(found) < 5:
            found += await fetched(gateway, path)
            asked += 1
        rows = [each.worker.traffic.rows()[each.callers.caller.key] for each in gateway.workers]

        assert sum(row["requests"] for row in rows) == asked
        assert sum(row["records"] for row in rows) == 5

    in_turn(scenario)


def test_nobody_reads_as_a_group_or_a_topic_that_is_not_theirs(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        let_in(gateway, reader(topics="ord*", groups="ours*"))
        path = await created(gateway, "ours")
        odd = {"topics": ["odd"]}
        assert await refused(gateway, "POST", f"{path}/subscription", odd) == (403, 40301)
        assert await refused(gateway, "POST", "/consumers/theirs") == (403, 40301)
        prefix = await gateway.ask("POST", f"{path}/subscription", {"topic_pattern": "or.*|odd"})
        let_in(gateway, reader(topics="ord*", groups="other"))
        assert await refused(gateway, "DELETE", path) == (403, 40301)
        let_in(gateway, reader(topics="other", groups="ours"))
        assert await refused(gateway, "GET", f"{path}/records") == (403, 40301)
        let_in(gateway, reader(topics="orders", groups="ours"))

        assert prefix.status == 204
        assert len(await all_of(gateway, path)) == RECORDS

    in_turn(scenario)


@pytest.mark.parametrize("at", [0, 1], ids=["the owner", "another worker"])
def test_a_fetch_ends_when_its_caller_is_revoked(in_turn: Ask, at: int) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(
            gateway,
            f"revoked-{at}",
            worker=gateway.workers[0],
            **{"consumer.request.timeout.ms": LONG_MS, "auto.offset.reset": "latest"},
        )
        await gateway.ask("POST", f"{path}/assignments", {"partitions": PLACES[:1]})
        asked = gateway.workers[at]
        fetching = asyncio.ensure_future(
            gateway.ask("GET", f"{path}/records", headers=JSON, worker=asked)
        )
        # It waits for the first call to end.
        waiting = asyncio.ensure_future(
            gateway.ask("GET", f"{path}/records", headers=JSON, worker=asked)
        )
        for _ in range(2):
            asked.callers.revoked.put_nowait(ApiError(Code.NOT_AUTHENTICATED, "was revoked"))
        async with asyncio.timeout(LONG_MS / 1_000 / 2):
            answers = await asyncio.gather(fetching, waiting)
            # No call holds its turn.
            deleted = await gateway.ask("DELETE", path)

        assert [answer.json()["error_code"] for answer in answers] == [40101, 40101]
        assert deleted.status == 204

    in_turn(scenario)


def test_a_call_that_no_worker_has_signed_is_not_served(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "unsigned", worker=gateway.workers[0])
        socket = gateway.workers[0].worker.place.socket_of("gateway-1")
        streams, writer = await asyncio.open_unix_connection(str(socket))
        writer.write(
            f"DELETE /passed{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        answer = await streams.read()
        writer.close()

        assert b"401" in answer
        assert b'"error_code":40101' in answer

    in_turn(scenario)


def test_a_consumer_that_cannot_be_made_is_refused(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        for body, told in WRONG_DRAFTS:
            assert await refused(gateway, "POST", "/consumers/wrong", body) == told, body

    in_turn(scenario)


def test_what_a_consumer_cannot_do_is_refused(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "refused")
        for method, under, body, told in WRONG_CALLS:
            assert await refused(gateway, method, f"{path}/{under}", body) == told, (under, body)

    in_turn(scenario)


def test_formats_and_kinds_of_reading_exclude_each_other(in_turn: Ask) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await subscribed(gateway, "exclude")
        other = {"Accept": "application/vnd.kafka.binary.v2+json"}
        partitions = {"partitions": PLACES}

        assert await refused(gateway, "GET", f"{path}/records", **other) == (406, 40601)
        assert await refused(gateway, "POST", f"{path}/assignments", partitions) == (409, 40901)
        assert await refused(
            gateway, "POST", f"{path}/subscription", {"topic_pattern": "ord.*"}
        ) == (409, 40901)
        assert await refused(
            gateway, "POST", f"{path}/subscription", b"x", **{"Content-Type": "text/plain"}
        ) == (415, 415)

    in_turn(scenario)


def test_a_subscription_creates_its_topics_where_the_caller_may(
    in_turn: Ask, bootstrap: str
) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, "creating")
        answer = await gateway.ask(
            "POST", f"{path}/subscription", {"topics": ["orders", "subscribed"]}
        )
        assert answer.status == 204

    in_turn(scenario)
    found = Admin(Connection(bootstrap=bootstrap)).find(["orders", "subscribed"])
    assert set(found) == {"orders", "subscribed"}
